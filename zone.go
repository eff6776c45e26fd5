package rollcall

import "time"

// checkZone refuses a zone whose name is not that of its rules. The data keeps
// the name alone: under [time.Local], which every machine calls Local, or a zone
// made up of an offset, it would be opened with other days than it was made with.
func checkZone(zone *time.Location) error {
	name := zone.String()
	named, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return Invalid("timezone", "%q is not the IANA name of a time zone, such as Europe/Berlin: time.LoadLocation gives a zone that has its name", name)
	}
	const month = 30 * 24 * time.Hour
	for at := time.Unix(0, 0); at.Year() < 2038; at = at.Add(month) {
		_, got := at.In(zone).Zone()
		if _, want := at.In(named).Zone(); got != want {
			return Invalid("timezone", "goes by other rules than the time zone %s, whose name it bears", name)
		}
	}
	return nil
}
