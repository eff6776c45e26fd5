// Package console holds the pages of the console: what an operator looks at.
//
// Their source is in ui. They are built to dist, which is committed and embedded, so
// that a server needs nothing else. They are plain files: who is signed in, and all
// that they show, they ask of the API.
package console
