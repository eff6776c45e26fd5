package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/rollcall/rollcall/local"
)

// localSite is one server with the embedded engine.
type localSite struct {
	r      *run
	disk   *disk
	binary string
	rng    *rand.Rand
	now    *server
	moves  int
}

func newLocalSite(r *run) (*localSite, error) {
	d, err := newDisk(r.o.dir)
	if err != nil {
		return nil, err
	}
	if d.image == "" {
		fmt.Fprintln(r.o.out, "No file system can be mounted here: power cuts and full disks are left out.")
	}
	return &localSite{r: r, disk: d, binary: r.o.tools.binary, rng: rand.New(rand.NewPCG(r.o.seed, 99))}, nil
}

func (s *localSite) data() string { return filepath.Join(s.disk.mount, fmt.Sprint("data", s.moves)) }

// rest gives the server some ticks, if an erasure was cut short: a crash has it finished
// before the server is ready, a disk that was full the next tick.
func (s *localSite) rest(ctx context.Context) error {
	for _, u := range s.r.world.users {
		if u.unanswered != nil && u.unanswered.resolved != nil {
			return pause(ctx, 3*time.Second)
		}
	}
	return nil
}

func (s *localSite) call(ctx context.Context, r request) (answer, error) {
	return s.r.api.call(ctx, s.now.url, r)
}

func (s *localSite) start(ctx context.Context) error {
	next, err := startServer(ctx, s.binary, s.data(), filepath.Join(s.r.o.dir, "server.log"), s.r.clocks)
	if err == nil {
		s.now = next
	}
	return err
}

func (s *localSite) stop() error { return errors.Join(s.now.stop(), s.disk.close()) }

func (s *localSite) clean() {
	if s.now != nil && !s.now.dead() {
		s.now.kill()
	}
}

// check has the data looked over, which no server has open.
func (s *localSite) check(ctx context.Context) error {
	_, err := tool(ctx, s.binary, s.r.clocks, "check", "--data-dir", s.data(), "--secret", secret)
	return err
}

// compareEvents does nothing: the server has the data open.
func (s *localSite) compareEvents(context.Context) error { return nil }

// readEvents reads the events from a copy of the data, which no server has open.
func (s *localSite) readEvents(ctx context.Context) error {
	copied := filepath.Join(s.r.o.dir, "copied")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(s.data(), "store"))); err != nil {
		return err
	}
	engine, err := local.Open(copied, local.Options{ReserveBytes: -1})
	if err != nil {
		return err
	}
	err = s.r.told.read(ctx, engine, s.r.clocks.now().hi)
	if err := errors.Join(err, engine.Close(), os.RemoveAll(copied)); err != nil {
		return err
	}
	return s.r.world.compareEvents(&s.r.told)
}

// lost is how long before a crash signs of life may be lost: the last second, and
// what a busy machine adds.
const lost = 3 * time.Second

// again starts the server after a crash that happened at some time.
func (s *localSite) again(ctx context.Context, crash span) error {
	s.r.world.crashed(crash.lo.Add(-lost))
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := s.readEvents(ctx); err != nil {
		return err
	}
	return s.up(ctx, span{crash.lo.Add(-gap), crash.hi})
}

// up starts the server. It was not there since some time.
func (s *localSite) up(ctx context.Context, since span) error {
	from := s.r.clocks.now()
	if err := s.start(ctx); err != nil {
		return err
	}
	s.r.world.outages.add(outage{from: since, to: span{from.lo, s.r.clocks.now().hi.Add(time.Second)}, certain: false})
	return nil
}

func (s *localSite) incidents() []incident {
	list := []incident{s.killed(), s.killed(), s.stopped(), s.frozen(), s.forwards(), s.forwards(), s.backwards(), s.moved()}
	if s.disk.image != "" {
		list = append(list, s.powerCut(), s.powerCut(), s.fullDisk(), s.fullDisk())
	}
	return list
}

// killed is kill -9 in the middle of the work.
func (s *localSite) killed() incident {
	var at span
	return incident{
		name: "killed",
		strike: func(context.Context) error {
			at = s.r.clocks.now()
			s.now.kill()
			at.hi = s.r.clocks.now().hi
			return nil
		},
		mend: func(ctx context.Context) error { return s.again(ctx, at) },
	}
}

// powerCut leaves what was synced.
func (s *localSite) powerCut() incident {
	var at span
	var image string
	return incident{
		name: "power cut",
		strike: func(context.Context) error {
			at = s.r.clocks.now()
			if err := s.now.freeze(); err != nil {
				return err
			}
			at.hi = s.r.clocks.now().hi
			var err error
			image, err = s.disk.copyImage()
			s.now.kill()
			return err
		},
		mend: func(ctx context.Context) error {
			if err := s.disk.cut(image); err != nil {
				return err
			}
			return s.again(ctx, at)
		},
	}
}

// fullDisk takes the room away for a while: down to what the server leaves alone,
// or all of it.
func (s *localSite) fullDisk() incident {
	var away *outage
	return incident{
		name: "full disk",
		strike: func(ctx context.Context) error {
			from := s.r.clocks.now()
			from.lo = from.lo.Add(-gap) // the last second that is on disk
			away = s.r.world.outages.begin(from)
			leave := int64(reserve - 20<<20)
			if s.rng.IntN(2) == 0 {
				leave = 0
			}
			if err := s.disk.fill(leave); err != nil {
				return err
			}
			return pause(ctx, time.Duration(s.rng.Int64N(int64(2*time.Second))))
		},
		mend: func(ctx context.Context) error {
			if s.now.dead() {
				return fmt.Errorf("the server ended: %s", tail(s.now.log))
			}
			if err := s.disk.free(); err != nil {
				return err
			}
			if err := s.r.untilWritten(ctx, s.now.url); err != nil {
				return err
			}
			s.r.world.outages.over(away, s.r.clocks.now().hi.Add(gap))
			return nil
		},
	}
}

// stopped is an orderly stop and start.
func (s *localSite) stopped() incident {
	var at span
	return incident{
		name: "stopped",
		strike: func(context.Context) error {
			at = s.r.clocks.now()
			return s.now.stop()
		},
		mend: func(ctx context.Context) error {
			at.hi = s.r.clocks.now().hi
			if err := s.check(ctx); err != nil {
				return err
			}
			if err := s.readEvents(ctx); err != nil {
				return err
			}
			return s.up(ctx, at)
		},
	}
}

// moved exports the data and imports it into an empty store, as from one engine to
// another.
func (s *localSite) moved() incident {
	var at span
	return incident{
		name: "moved",
		strike: func(context.Context) error {
			at = s.r.clocks.now()
			return s.now.stop()
		},
		mend: func(ctx context.Context) error {
			at.hi = s.r.clocks.now().hi
			if err := s.readEvents(ctx); err != nil {
				return err
			}
			file := filepath.Join(s.r.o.dir, fmt.Sprintf("export-%d", s.moves))
			if _, err := tool(ctx, s.binary, s.r.clocks, "export", "--data-dir", s.data(), "--secret", secret, "--archive-dsn", "off", file); err != nil {
				return err
			}
			old := s.data()
			s.moves++
			if _, err := tool(ctx, s.binary, s.r.clocks, "import", "store", "--create", "--keys", "--data-dir", s.data(), "--secret", secret, "--archive-dsn", "off", file); err != nil {
				return err
			}
			s.r.world.moved()
			s.r.told.newLog(s.r.clocks.now())
			if err := errors.Join(s.check(ctx), os.RemoveAll(old), os.Remove(file)); err != nil {
				return err
			}
			return s.up(ctx, at)
		},
	}
}

// frozen stops the process for a while, longer or shorter than a gap.
func (s *localSite) frozen() incident {
	return incident{
		name: "frozen",
		strike: func(ctx context.Context) error {
			from := s.r.clocks.now()
			if err := s.now.freeze(); err != nil {
				return err
			}
			if err := pause(ctx, time.Duration(s.rng.Int64N(int64(2*gap)))); err != nil {
				return err
			}
			s.r.world.outages.add(outage{from: span{from.lo.Add(-time.Second), s.r.clocks.now().hi}, to: s.r.clocks.now().to(time.Second)})
			return s.now.thaw()
		},
		mend: func(context.Context) error { return nil },
	}
}

func (s span) to(more time.Duration) span { return span{s.lo, s.hi.Add(more)} }

// forwards sets the clock forward while the server runs.
func (s *localSite) forwards() incident {
	return incident{
		name: "clock forwards",
		strike: func(context.Context) error {
			d := []time.Duration{
				2 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 25 * time.Hour, 26 * time.Hour,
			}[s.rng.IntN(8)]
			s.r.jump(d)
			return nil
		},
		mend: func(ctx context.Context) error { return pause(ctx, time.Duration(s.rng.Int64N(int64(2*time.Second)))) },
	}
}

// backwards sets the clock back, and a little later right again; in between the
// server may be started anew.
func (s *localSite) backwards() incident {
	var d time.Duration
	return incident{
		name: "clock backwards",
		strike: func(ctx context.Context) error {
			d = []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour, 3 * time.Hour}[s.rng.IntN(5)]
			s.r.jump(-d)
			return pause(ctx, 500*time.Millisecond)
		},
		mend: func(ctx context.Context) error {
			if err := s.r.compare(ctx); err != nil {
				return fmt.Errorf("while the clock was back: %w", err)
			}
			if s.rng.IntN(2) == 0 {
				at := s.r.clocks.now()
				s.now.kill()
				at.hi = s.r.clocks.now().hi
				if err := s.again(ctx, at); err != nil {
					return err
				}
				if err := s.r.compare(ctx); err != nil {
					return fmt.Errorf("after a start while the clock was back: %w", err)
				}
			}
			s.r.jump(max(d, s.r.clocks.behind()) + time.Second)
			return nil
		},
	}
}

// jump sets the clock, which may be an outage.
func (r *run) jump(d time.Duration) {
	from := r.clocks.now()
	from.lo = from.lo.Add(-2 * time.Second)
	away := r.world.outages.begin(from)
	earliest := r.clocks.jump(d)
	to := r.clocks.now()
	if earliest.Before(to.lo) {
		to.lo = earliest
	}
	r.say("the clock jumps by %s to %s", d, to)
	r.world.outages.complete(away, outage{from: from, to: to.to(2 * time.Second), certain: d > 3*gap})
	r.world.mu.Lock()
	r.world.answeredAt = to
	r.world.mu.Unlock()
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
