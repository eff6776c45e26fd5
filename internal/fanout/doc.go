// Package fanout hands the messages of one writer to many readers. A reader takes
// all messages, or those of the topics that they follow; a reader who falls too
// far behind is cut off and holds nobody up.
//
// What a message costs depends on the readers who want it, not on all there are:
// an index leads from a topic to its followers. The index holds numbers and no
// pointers, 16 bytes for each topic of each reader, so the garbage collector does
// not walk it.
package fanout
