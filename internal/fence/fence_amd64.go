package fence

// Loads lets no load before it pass one after it. This processor never does.
func Loads() {}

// Stores lets no store before it be seen after one that follows. Nor that.
func Stores() {}
