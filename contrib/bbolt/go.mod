module github.com/ostrodb/ostro/contrib/bbolt

go 1.26.0

require (
	github.com/ostrodb/ostro v0.0.0-00010101000000-000000000000
	go.etcd.io/bbolt v1.5.0
	golang.org/x/sys v0.49.0
)

require github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect

replace github.com/ostrodb/ostro => ../..
