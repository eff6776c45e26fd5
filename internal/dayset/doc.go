// Package dayset keeps, for every day, the set of numbers seen that day, and
// answers the questions one asks of such sets: how many a day, a week and a
// month; who came back; who left; who came every day, and how long in a row.
//
// Numbers are dense, 0 up to about 2^24: a dense number costs a bit where it is
// frequent and two bytes where it is rare. Days are civil dates counted from
// 1970-01-01 and lie within ±2^30. Ranges of days include both ends; a range
// whose end lies before its start is empty.
//
// Every analysis looks at one partition of the numbers. Those that count add
// to what they are given, so that a total over partitions is a chain of calls:
//
//	var points []dayset.Point
//	for _, part := range partitions {
//		points = dayset.Series(points, part, from, to, dayset.MAU28)
//	}
//
// In storage a set is cut into containers of 65,536 neighbouring numbers, in a
// form made so that adding a number is a merge of four bytes: see [AppendAdd],
// [Fold] and [Decode].
//
// Functions that only read may run side by side over the same sets; nothing
// here is safe for a writer beside another user.
package dayset
