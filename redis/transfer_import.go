package redis

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Import implements [rollcall.Transfer]. Several small snapshots of a partition go in one
// script; one that is too large for that goes in steps: see importLarge.
func (e *Engine) Import(ctx context.Context, at time.Time, snapshots []rollcall.UserSnapshot) error {
	now := at.UnixMilli()
	small := make([]importScript, len(e.keyPrefixes))
	var calls []call
	var large []*partImport
	for i := range snapshots {
		d := &snapshots[i]
		if d.IsEmpty() {
			continue
		}
		if err := e.knowKinds(ctx, now, d.Kinds()...); err != nil {
			return err
		}
		for p, x := range e.splitByPart(d) {
			x.part = p
			cost := x.cost()
			switch {
			case cost > scriptCost && x.user != "":
				large = append(large, x)
			case cost > scriptCost:
				for _, some := range x.cut() {
					calls = append(calls, partCall(p, &e.scripts.transferEnter, some.arguments(enterAll)...))
				}
			default:
				if small[p].cost > 0 && small[p].cost+cost > scriptCost {
					calls = append(calls, partCall(p, &e.scripts.transferEnter, small[p].take()...))
				}
				small[p].add(x.arguments(enterAll), cost)
			}
		}
	}
	for p := range small {
		if small[p].cost > 0 {
			calls = append(calls, partCall(p, &e.scripts.transferEnter, small[p].take()...))
		}
	}
	// Reverse edges first, then the small snapshots together, then the large ones in steps.
	if err := e.addReverseEdgesOf(ctx, now, snapshots); err != nil {
		return err
	}
	if err := e.runImports(ctx, now, calls...); err != nil {
		return err
	}
	for _, x := range large {
		if err := e.importLarge(ctx, now, x); err != nil {
			return err
		}
	}
	return e.checkOpen()
}

// runImports carries out calls of transfer_enter.lua.
func (e *Engine) runImports(ctx context.Context, now int64, calls ...call) error {
	messages, err := e.do(ctx, now, calls...)
	if err != nil {
		return err
	}
	for _, msg := range messages {
		refused, err := msg.AsStrSlice()
		if err != nil {
			return damaged("the answer to an import")
		}
		if len(refused) > 0 {
			return enginekit.KnownUser(refused[0]) // reverse edges of the snapshot are pruned later
		}
	}
	return nil
}

// importLarge imports a snapshot that is too large for one script: it checks all parts,
// then enters one after the other. If the server dies in between, a key importing:<user>
// says so: the next import of the snapshot is let in, and enters all parts again.
func (e *Engine) importLarge(ctx context.Context, now int64, x *partImport) error {
	parts := x.cut()
	checks := make([]call, len(parts))
	for i, part := range parts {
		checks[i] = partCall(x.part, &e.scripts.transferEnter, part.arguments(enterCheck)...)
	}
	if err := e.runImports(ctx, now, checks...); err != nil {
		return err
	}
	for i, part := range parts {
		phase := enterNext
		switch i {
		case 0:
			phase = enterFirst
		case len(parts) - 1:
			phase = enterLast
		}
		if err := e.runImports(ctx, now, partCall(x.part, &e.scripts.transferEnter, part.arguments(phase)...)); err != nil {
			return err
		}
	}
	return nil
}

// addReverseEdgesOf writes the reverse edges of all friends, before any edge is entered.
func (e *Engine) addReverseEdgesOf(ctx context.Context, now int64, snapshots []rollcall.UserSnapshot) error {
	type edge struct{ user, friend string }

	// Note them first, in the users' partitions: users together up to edgeStep friends.
	notes, edges := make([][]string, len(e.keyPrefixes)), make([][]edge, len(e.keyPrefixes))
	var calls []call
	var of [][]edge
	flush := func(p int) {
		if len(edges[p]) > 0 {
			calls, of = append(calls, partCall(p, &e.scripts.friendNoteWrite, notes[p]...)), append(of, edges[p])
			notes[p], edges[p] = nil, nil
		}
	}
	for i := range snapshots {
		d := &snapshots[i]
		p := e.partOf(d.User)
		for some := range slices.Chunk(d.Friends, edgeStep) {
			if len(edges[p])+len(some) > edgeStep {
				flush(p)
			}
			notes[p] = append(notes[p], d.User, strconv.Itoa(len(some)))
			for _, f := range some {
				notes[p], edges[p] = append(notes[p], f.User), append(edges[p], edge{d.User, f.User})
			}
		}
	}
	for p := range edges {
		flush(p)
	}
	messages, err := e.do(ctx, now, calls...)
	if err != nil {
		return err
	}

	// Write the noted reverse edges, each with the stamp of its note.
	reverse := make([][]string, len(e.keyPrefixes))
	for i, msg := range messages {
		stamp, err := msg.ToString()
		if err != nil {
			return damaged("an answer about friends")
		}
		for _, x := range of[i] {
			p := e.partOf(x.friend)
			reverse[p] = append(reverse[p], x.friend, x.user, stamp)
		}
	}
	calls = nil
	for p, args := range reverse {
		for some := range slices.Chunk(args, 3*edgeStep) {
			calls = append(calls, partCall(p, &e.scripts.friendReverseAdd, some...))
		}
	}
	_, err = e.do(ctx, now, calls...)
	return err
}

// splitByPart divides a snapshot over partitions: all of a user goes to one; what is left
// of erased users goes to those that their ids and bans lead to.
func (e *Engine) splitByPart(d *rollcall.UserSnapshot) map[int]*partImport {
	out := make(map[int]*partImport)
	into := func(p int) *partImport {
		if out[p] == nil {
			out[p] = &partImport{user: d.User}
		}
		return out[p]
	}
	if d.User != "" {
		into(e.partOf(d.User)).fill(d)
		return out
	}
	for i := range d.Ended {
		into(e.home(d.Ended[i].ID.Home())).addEnded(&d.Ended[i])
	}
	for _, b := range d.Bans {
		known := 1<<min(b.Bits, 16) - 1
		for p := range e.keyPrefixes { // all that the known bits leave open
			if mask := known & (len(e.keyPrefixes) - 1); p&mask == int(b.Home)&mask {
				into(p).addBan(b)
			}
		}
	}
	return out
}
