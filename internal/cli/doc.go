// Package cli reads a command line into structs. A verb is a struct; its flags and
// arguments are the fields, and tags say what they are:
//
//	cmd:""            a verb below this one
//	arg:""            an argument; without it, a field is a flag
//	name:"…"          its name, else that of the field: DryRun is dry-run
//	short:"y"         a flag's letter
//	aliases:"a,b"     other names of a flag
//	help:"…"          a sentence about it
//	placeholder:"…"   what stands for a flag's value in the help
//	default:"…"       the value where none is given
//	enum:"a,b"        the only values that may be given
//	required:""       a flag that must be given
//	optional:""       an argument that need not be given
//	group:"…"         the heading below which the help lists a flag or a verb
//	sep:"none"        each flag holds one value of a list, which may contain commas
//	type:"path"       a file: ~/ is the home directory
//	hidden:""         not in the help
//
// A field is a string, a bool, a number, a list of strings or numbers, or a map of
// strings, one KEY=VALUE a flag. Fields of embedded structs count as the struct's own.
// A struct with a method Help() string has paragraphs of its own in its help.
//
// No method is looked up by its name: a program that does so keeps every exported method
// of every type it holds, called or not.
package cli
