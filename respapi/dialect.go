package respapi

// Dialect binds names of keys to what they mean.
type Dialect struct{}

func dialectCommands() []command { return nil }
