// Package enginetest is the conformance suite of [rollcall.Engine]: every
// sentence of the port's comments and of the domain has a case here, and every
// engine passes them all. [Run] runs the cases, [RunModel] compares random
// histories with a model of plain maps, and [RunCollegeMsg] replays the traffic
// of a real community against answers worked out independently.
//
//	func TestConformance(t *testing.T) {
//		enginetest.Run(t, func(t testing.TB) enginetest.Store { return newStore(t) })
//	}
//
// The cases drive the engine through [rollcall.Roll] on a clock that stands
// still until it is told the time, so they never wait and never depend on the
// speed of the machine.
package enginetest
