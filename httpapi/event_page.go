package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/fanout"
)

// eventPage is a part of the log.
type eventPage struct {
	Items []event `json:"items" nullable:"false"`
	Next  string  `json:"next" doc:"the place to give as after for what follows"`
	Reset bool    `json:"reset,omitempty" doc:"events since the place that was given are missing: they are no longer kept, or the store is another. next is now"`
}

// pagesPerAnswer bounds what one answer looks at for events that fit a filter.
const pagesPerAnswer = 10

// answerEventPage answers with a page of events, and waits for one if there is none
// and the reader wishes.
func (s *Server) answerEventPage(w http.ResponseWriter, r *http.Request, q eventQuery) {
	c := callerOf(r.Context())
	leave, err := s.streams.enter(eventStreams, c.streamOwner())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer leave()
	ctx, end := s.streams.lifeOf(r.Context(), c)
	defer end(nil)
	p := pager{openStreams: s.streams, feed: s.streams.feedOf(c.role), eventQuery: q}
	page, err := p.answer(ctx)
	switch {
	case errors.Is(context.Cause(ctx), errRevoked):
		s.fail(w, r, c.worksNoMore())
	case err != nil:
		s.fail(w, r, err)
	default:
		s.reply(w, r, http.StatusOK, page)
	}
}

// pager makes one page.
type pager struct {
	*openStreams
	eventQuery
	feed *feed
}

func (p *pager) answer(ctx context.Context) (eventPage, error) {
	if p.wait == 0 {
		return p.without(ctx)
	}
	// The reader joins first, so that what comes while the log is read is not missed.
	if err := p.feed.hold(ctx); err != nil {
		return eventPage{}, err
	}
	defer p.feed.release()
	want := fanout.Want[rollcall.Event]{
		All:    p.filter.User == "",
		Accept: func(m *fanout.Message[rollcall.Event]) bool { return p.filter.Shows(&m.Of) },
	}
	if !want.All {
		want.Topics = []string{p.filter.User}
	}
	reader, place := p.feed.hub.Join(want)
	defer reader.Leave()
	if p.after == "" {
		p.after = place
	}
	page, end, err := p.read(ctx)
	if err != nil || !end || page.Reset || len(page.Items) > 0 {
		return page, err
	}
	return p.await(ctx, reader, page)
}

// without answers at once.
func (p *pager) without(ctx context.Context) (eventPage, error) {
	if p.after == "" {
		return p.now(ctx, false)
	}
	page, _, err := p.read(ctx)
	return page, err
}

// now is an empty page at the end of the log.
func (p *pager) now(ctx context.Context, reset bool) (eventPage, error) {
	last, err := p.feed.roll.LastEvent(ctx)
	return eventPage{Items: []event{}, Next: placeOf(last), Reset: reset}, err
}

// read reads the log from after on. end says that it came to its end.
func (p *pager) read(ctx context.Context) (page eventPage, end bool, err error) {
	page = eventPage{Items: []event{}, Next: p.after}
	families, last := p.filter.Families(), rollcall.EventID("")
	if len(families) < len(rollcall.EventFamilies()) {
		// Events of the other family are not read: the place moves on over those before now.
		if last, err = p.feed.roll.LastEvent(ctx); err != nil {
			return page, false, err
		}
	}
	for range pagesPerAnswer {
		events, err := p.page(ctx, p.feed.roll, idOf(page.Next), rollcall.MaxLimit, families)
		if errors.Is(err, rollcall.ErrEventsGone) {
			page, err = p.now(ctx, true)
			return page, true, err
		}
		if err != nil || len(events) == 0 {
			page.Next = placeOf(max(idOf(page.Next), last))
			return page, true, err
		}
		for i := range events {
			page.Next = placeOf(events[i].ID)
			if !p.filter.Shows(&events[i]) {
				continue
			}
			if page.Items = append(page.Items, eventOf(events[i])); len(page.Items) == p.limit {
				return page, false, nil
			}
		}
	}
	return page, false, nil
}

// await waits for the first events that the feed hands out.
func (p *pager) await(ctx context.Context, reader *fanout.Reader[rollcall.Event], page eventPage) (eventPage, error) {
	timer := time.NewTimer(p.wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errStopping) {
				return page, nil // nothing came, and the reader asks another server
			}
			return page, ctx.Err()
		case <-timer.C:
			return page, nil
		case <-reader.Ready():
		}
		messages, _, cut := reader.Take()
		if cut {
			return page, nil // more came at once than is kept for a reader: the log has it
		}
		for _, m := range messages {
			page.Next = placeOf(m.Of.ID)
			if m.Of.Type == resetEvent {
				page.Reset = true
				return page, nil
			}
			if page.Items = append(page.Items, eventOf(m.Of)); len(page.Items) == p.limit {
				return page, nil
			}
		}
		if len(page.Items) > 0 {
			return page, nil
		}
	}
}
