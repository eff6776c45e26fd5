package demo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// person is somebody with habits.
type person struct {
	id, name, kind string
	invisible      bool
	joined         rollcall.Day
	leaves         rollcall.Day // the first day on which they never come again
	often          float64      // how likely they come on a day while they are keen
	keenDays       float64      // how fast that cools down
	lasting        float64      // the part of it that stays
	visits         float64      // of a day on which they come
	shift          time.Duration
	devices        []device
	friends        []int32 // who were there before them
}

// What kinds of people there are, and how often each is met.
var (
	kinds      = []string{"user", "vip", "guest", "staff"}
	kindShares = []float64{0.80, 0.10, 0.09, 0.01}
)

// never is a day that nobody sees.
const never = rollcall.Day(math.MaxInt32)

// makePeople makes everyone who has come by now, and those who come in the next days.
func (w *World) makePeople() []person {
	first, aDay := w.first(), float64(w.opts.Users)*0.72/pastDays
	var days []rollcall.Day
	d := w.dice(1)
	for i := range w.opts.Users {
		// Some were there when it all began; later ones came a little faster each week.
		day := first
		if i > 0 && d.roll() < 0.72 {
			day += rollcall.Day(math.Pow(d.roll(), 0.8) * (pastDays + 1))
		}
		days = append(days, min(day, w.today))
	}
	for ahead := range rollcall.Day(comingDays) {
		for range int(aDay + d.roll()) {
			days = append(days, w.today+1+ahead)
		}
	}
	slices.Sort(days)
	taken := make(map[string]bool, len(days))
	people := make([]person, len(days))
	for i, day := range days {
		people[i] = w.makePerson(i, day, taken)
	}
	return people
}

func (w *World) makePerson(i int, joined rollcall.Day, taken map[string]bool) person {
	d := w.dice(2, uint64(i))
	p := person{joined: joined, leaves: never, kind: kinds[d.weighted(kindShares...)], invisible: d.roll() < 0.01}
	region := p.giveName(d, taken)
	p.devices = makeDevices(d, region, p.kind)
	p.shift = time.Duration(d.between(-1, 1) * float64(150*time.Minute))
	p.visits = d.between(1.5, 5)
	p.giveHabits(d)

	// Friends are mostly of those who came about the same time.
	if p.kind != "guest" {
		for range 2 + d.below(9) {
			near := i - 1 - int(math.Abs(d.between(-1, 1)*d.between(0, 1))*400)
			if d.roll() < 0.2 {
				near = d.below(max(i, 1))
			}
			if near >= 0 && near < i && !slices.Contains(p.friends, int32(near)) {
				p.friends = append(p.friends, int32(near))
			}
		}
	}
	return p
}

// giveHabits says how often somebody comes, and how long they stay with it. Nearly half
// of all people try it for some days, and the others stay for weeks or for good.
func (p *person) giveHabits(d *dice) {
	switch d.weighted(0.34, 0.24, 0.36, 0.06) {
	case 0: // looks around
		p.often, p.keenDays, p.lasting = d.between(0.3, 0.7), d.between(1, 4), 0
		p.leaves = p.joined + 1 + rollcall.Day(d.between(0, 9))
	case 1: // for some weeks
		p.often, p.keenDays, p.lasting = d.between(0.4, 0.8), d.between(10, 30), 0.1
		p.leaves = p.joined + 14 + rollcall.Day(d.between(0, 110))
	case 2: // stays
		p.often, p.keenDays, p.lasting = d.between(0.5, 0.9), d.between(20, 80), d.between(0.5, 0.95)
	case 3: // every day
		p.often, p.keenDays, p.lasting = d.between(0.97, 1), 1000, 1
	}
	switch p.kind {
	case "guest":
		p.often, p.leaves = p.often*0.5, min(p.leaves, p.joined+1+rollcall.Day(d.between(0, 12)))
	case "vip":
		p.lasting = max(p.lasting, 0.6)
		p.leaves = max(p.leaves, p.joined+90)
	}
}

// byWeekday is how many come on each day of the week, from Sunday on, of those who would.
var byWeekday = [7]float64{0.78, 1, 0.98, 1, 0.97, 0.9, 0.72}

// comes reports whether a person is there on a day: on the first one for certain.
func (w *World) comes(i int, day rollcall.Day) bool {
	p := &w.people[i]
	switch {
	case day < p.joined || day >= p.leaves:
		return false
	case day == p.joined:
		return true
	}
	keen := p.lasting + (1-p.lasting)*math.Exp(-float64(day-p.joined)/p.keenDays)
	often := p.often * keen
	if often < 0.95 { // who comes every day comes on Sundays too
		often *= byWeekday[((int(day)+4)%7+7)%7] // 1970-01-01 was a Thursday
	}
	return w.dice(3, uint64(i), uint64(day)).roll() < often
}

// giveName names a person, by the customs of one of some places, and returns the region
// of that place.
func (p *person) giveName(d *dice, taken map[string]bool) (region string) {
	if p.kind == "guest" {
		for p.id == "" || taken[p.id] {
			p.id = fmt.Sprintf("guest-%05x", d.below(1<<20))
		}
		taken[p.id] = true
		return one(d, places).region
	}
	at := &places[d.weighted(placeShares()...)]
	given, family := one(d, at.given), one(d, at.family)
	p.name = given.name + at.between + family.name
	if at.familyFirst {
		p.name = family.name + at.between + given.name
	}
	for shape := 0; p.id == "" || taken[p.id]; shape++ {
		p.id = makeID(d, given.latin, family.latin, shape)
	}
	taken[p.id] = true
	return at.region
}

// makeID makes an id of a name. Most people try some shapes before they take a number: a
// year of birth, or whatever comes to mind. The more of them are taken, the longer it is.
func makeID(d *dice, given, family string, tried int) string {
	shapes := [...]string{
		given + "." + family, given[:1] + family, given + "_" + family[:1], given + family, given,
		family + "." + given, given + "-" + family, given + family[:1], family + given[:1], given + "_" + family,
	}
	id := shapes[min(int(d.roll()*d.roll()*float64(len(shapes))*1.6), len(shapes)-1)]
	switch d.weighted(0.70, 0.13, 0.12, 0.05) {
	case 1:
		return fmt.Sprintf("%s%02d", id, (70+d.below(38))%100)
	case 2:
		return fmt.Sprintf("%s%d", id, 1+d.below(9+9*tried))
	case 3:
		id += "_" + one(d, ventures)
		if tried > 4 {
			id += strconv.Itoa(d.below(10 * tried))
		}
	}
	return id
}

// ventures are what else people put into their ids.
var ventures = []string{"dev", "art", "music", "hq", "work", "home", "blog", "io", "x", "photo"}
