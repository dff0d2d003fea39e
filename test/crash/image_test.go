package crash

import "maps"

// entry is what a key holds. Far expiries are exact; near ones, which pass
// during the test, only bound when the key may be seen.
type entry struct {
	value    string
	expireAt int64 // Unix milliseconds; 0: never
}

// image is the contents of a writer's two databases. The first is the one that
// its commands speak of.
type image [2]map[string]entry

func newImage() *image {
	return &image{{}, {}}
}

func (im *image) clone() *image {
	return &image{maps.Clone(im[0]), maps.Clone(im[1])}
}

// change is one step from an image to the next.
type change struct {
	act   act
	key   string
	entry entry
}

type act uint8

const (
	putKey act = iota
	dropKey
	emptyDB // FLUSHDB
	swapDBs // SWAPDB
)

func (im *image) apply(changes []change) {
	for _, c := range changes {
		switch c.act {
		case putKey:
			im[0][c.key] = c.entry
		case dropKey:
			delete(im[0], c.key)
		case emptyDB:
			im[0] = map[string]entry{}
		case swapDBs:
			im[0], im[1] = im[1], im[0]
		}
	}
}
