// Package manual serves the documentation as pages of a browser.
//
// It takes the Markdown of the repository as it is. README.md of each language is the
// first page, and its lists of links are the contents of all others. The pages are made
// when one is first asked for, and kept: some fifty of them, in a fraction of a second.
// They need nothing from elsewhere, and no script but the one for the search, which looks
// in an index of the sections that is made with the pages.
package manual
