package directory

// SkipTo makes n the next number to give, as if all before it were in use.
func (d *Directory) SkipTo(n uint32) { d.limit = n }
