package fence

// Loads lets no load before it pass one after it.
func Loads()

// Stores lets no store before it be seen after one that follows.
func Stores()
