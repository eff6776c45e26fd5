package takeover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// errEnough ends a walk that has seen what it needs.
var errEnough = errors.New("enough")

// member is an element of a sorted set.
type member struct {
	name  string
	score float64
}

// position is how far a walk has come: the server and the cursor of SCAN. The zero
// value is the beginning.
type position struct {
	Node   string `json:"node,omitempty"`
	Cursor uint64 `json:"cursor,omitempty"`
}

// walkKeys shows visit the keys that match a pattern, a portion at a time, with the
// position behind it. A key may come twice.
func (s *Source) walkKeys(ctx context.Context, match string, from position, visit func([]string, position) error) error {
	nodes, err := s.masters(ctx)
	if err != nil {
		return err
	}
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[address]
		if address < from.Node {
			continue
		}
		cursor := uint64(0)
		if address == from.Node {
			cursor = from.Cursor
		}
		for {
			c := node.B().Scan().Cursor(cursor).Match(match).Count(portion).Build()
			m, err := s.doOn(ctx, node, portion, c)
			if err != nil {
				return err
			}
			entry, err := m.AsScanEntry()
			if err != nil {
				return s.readError(err)
			}
			cursor = entry.Cursor
			if err := visit(entry.Elements, position{address, cursor}); err != nil {
				return err
			}
			if cursor == 0 {
				break
			}
		}
	}
	return nil
}

// walkZset shows visit the members of a sorted set, a portion at a time, with the
// cursor behind it, 0 at the end. One that changes meanwhile may come twice.
func (s *Source) walkZset(ctx context.Context, key string, from uint64, visit func([]member, uint64) error) error {
	for cursor := from; ; {
		entry, err := s.scan(ctx, s.client.B().Zscan().Key(key).Cursor(cursor).Count(portion).Build())
		if wrongType(err) {
			return fmt.Errorf("%s is no sorted set: is --key right? %w", quoted(visible(key)), err)
		}
		if err != nil {
			return err
		}
		members, err := pairs(entry.Elements)
		if err != nil {
			return err
		}
		cursor = entry.Cursor
		if err := visit(members, cursor); err != nil || cursor == 0 {
			return err
		}
	}
}

// walkSet shows visit the members of a set, a portion at a time.
func (s *Source) walkSet(ctx context.Context, key string, visit func([]string) error) error {
	return s.walkSetFrom(ctx, key, 0, visit)
}

func (s *Source) walkSetFrom(ctx context.Context, key string, from uint64, visit func([]string) error) error {
	for cursor := from; ; {
		entry, err := s.scan(ctx, s.client.B().Sscan().Key(key).Cursor(cursor).Count(portion).Build())
		if err != nil {
			return err
		}
		cursor = entry.Cursor
		if err := visit(entry.Elements); err != nil || cursor == 0 {
			return err
		}
	}
}

// walkSets shows visit the members of sets, each by its place among the keys: those of the
// small ones, which most are, with one question to all. other is told of a key of another type.
func (s *Source) walkSets(ctx context.Context, keys []string, other func(int), visit func(int, []string) error) error {
	entries, err := s.firstOfSets(ctx, keys, other)
	if err != nil {
		return err
	}
	for i, entry := range entries {
		if err := s.wait(ctx, len(entry.Elements)-1); err != nil {
			return err
		}
		if err := visit(i, entry.Elements); err != nil {
			return err
		}
		if entry.Cursor == 0 {
			continue
		}
		rest := func(some []string) error { return visit(i, some) }
		if err := s.walkSetFrom(ctx, keys[i], entry.Cursor, rest); err != nil {
			return err
		}
	}
	return nil
}

// firstOfSets asks for a portion of each set.
func (s *Source) firstOfSets(ctx context.Context, keys []string, other func(int)) ([]rueidis.ScanEntry, error) {
	cmds := make([]rueidis.Completed, len(keys))
	for i, key := range keys {
		cmds[i] = s.client.B().Sscan().Key(key).Cursor(0).Count(portion).Build()
	}
	if err := s.wait(ctx, len(keys)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	out := make([]rueidis.ScanEntry, len(keys))
	for i, r := range s.client.DoMulti(ctx, cmds...) {
		entry, err := r.AsScanEntry()
		switch {
		case err == nil:
			out[i] = entry
		case wrongType(err):
			other(i)
		default:
			return nil, s.readError(err)
		}
	}
	return out, nil
}

// newer shows visit the members whose score lies between least and most, a portion at a time.
// Where a whole portion has one score, those of that score are read by their rank.
func (s *Source) newer(ctx context.Context, key string, least, most float64, visit func([]member) error) error {
	from := strconv.FormatFloat(least, 'f', -1, 64)
	for {
		c := s.client.B().Zrangebyscore().Key(key).Min(from).Max(strconv.FormatFloat(most, 'f', -1, 64)).Withscores().Limit(0, portion).Build()
		some, err := s.members(ctx, c)
		if err != nil {
			return err
		}
		if err := visit(some); err != nil || len(some) < portion {
			return err
		}
		last := some[len(some)-1].score
		from = strconv.FormatFloat(last, 'f', -1, 64)
		if some[0].score == last {
			if err := s.ofOneScore(ctx, key, last, visit); err != nil {
				return err
			}
			from = "(" + from
		}
	}
}

// ofOneScore shows visit all members with a score, however many these are. Ranks fall when others
// leave what is below, so each portion begins in the middle of the one before. Many may leave
// while a portion is entered: where nobody of the one before is met again, it goes back.
func (s *Source) ofOneScore(ctx context.Context, key string, score float64, visit func([]member) error) error {
	const step = portion / 2
	below, err := s.number(ctx, s.client.B().Zcount().Key(key).Min("-inf").Max("("+strconv.FormatFloat(score, 'f', -1, 64)).Build())
	if err != nil {
		return err
	}
	last, back := "", int64(step) // members of one score stand in the order of their bytes
	for start := max(0, below-step); ; {
		from, to := strconv.FormatInt(start, 10), strconv.FormatInt(start+portion-1, 10)
		some, err := s.members(ctx, s.client.B().Zrange().Key(key).Min(from).Max(to).Withscores().Build())
		if err != nil {
			return err
		}
		if start > 0 && (len(some) == 0 || some[0].score > score || some[0].score == score && some[0].name > last) {
			start, back = max(0, start-back), 2*back
			continue
		}
		through := len(some) < portion || some[len(some)-1].score > score
		some = slices.DeleteFunc(some, func(z member) bool { return z.score != score })
		if err := visit(some); err != nil || through {
			return err
		}
		if len(some) > 0 {
			last = some[len(some)-1].name
		}
		start, back = start+step, step
	}
}

// members asks for a portion of a sorted set, with its scores.
func (s *Source) members(ctx context.Context, c rueidis.Completed) ([]member, error) {
	answer, err := s.do(ctx, portion, c)
	if err != nil {
		return nil, err
	}
	scores, err := answer.AsZScores()
	if err != nil {
		return nil, s.readError(err)
	}
	out := make([]member, len(scores))
	for i, z := range scores {
		out[i] = member{z.Member, z.Score}
	}
	return out, nil
}

// pairs reads members and scores that follow each other.
func pairs(elements []string) ([]member, error) {
	out := make([]member, 0, len(elements)/2)
	for i := 0; i+1 < len(elements); i += 2 {
		score, err := strconv.ParseFloat(elements[i+1], 64)
		if err != nil {
			return nil, err
		}
		out = append(out, member{elements[i], score})
	}
	return out, nil
}

// oldText is what stands under a key: nothing, a text, or something of another type.
type oldText struct {
	text  string // at most one byte longer than was asked for: then there is more
	there bool
	other bool
}

// texts asks for the beginnings of the strings of keys, of most bytes each and one more: whoever
// filled them may have put anything there.
func (s *Source) texts(ctx context.Context, keys []string, most int64) ([]oldText, error) {
	out := make([]oldText, len(keys))
	if len(keys) == 0 {
		return out, nil
	}
	cmds := make([]rueidis.Completed, 0, 2*len(keys))
	for _, key := range keys {
		cmds = append(cmds, s.client.B().Exists().Key(key).Build(), s.client.B().Getrange().Key(key).Start(0).End(most).Build())
	}
	if err := s.wait(ctx, len(keys)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answers := s.client.DoMulti(ctx, cmds...)
	for i := range out {
		there, err := answers[2*i].AsBool()
		if err != nil {
			return nil, s.readError(err)
		}
		text, err := answers[2*i+1].ToString()
		switch {
		case wrongType(err):
			out[i] = oldText{there: true, other: true}
		case err != nil:
			return nil, s.readError(err)
		default: // it may come or go between the two
			out[i] = oldText{text: text, there: there || text != ""}
		}
	}
	return out, nil
}

// wrongType reports whether Redis refused a command as the key is of another type.
func wrongType(err error) bool {
	var answer *rueidis.RedisError
	return errors.As(err, &answer) && strings.HasPrefix(answer.Error(), "WRONGTYPE")
}

// scores asks for the scores of members; there says which have one.
func (s *Source) scores(ctx context.Context, key string, names []string) (scores []float64, there []bool, err error) {
	cmds := make([]rueidis.Completed, len(names))
	for i, name := range names {
		cmds[i] = s.client.B().Zscore().Key(key).Member(name).Build()
	}
	answers, err := s.all(ctx, cmds...)
	if err != nil {
		return nil, nil, err
	}
	scores, there = make([]float64, len(names)), make([]bool, len(names))
	for i := range answers {
		if answers[i].IsNil() {
			continue
		}
		if scores[i], err = answers[i].AsFloat64(); err != nil {
			return nil, nil, s.readError(err)
		}
		there[i] = true
	}
	return scores, there, nil
}

// number asks a command that answers with an integer.
func (s *Source) number(ctx context.Context, c rueidis.Completed) (int64, error) {
	m, err := s.do(ctx, 1, c)
	if err != nil || m.IsNil() {
		return 0, err
	}
	n, err := m.AsInt64()
	return n, s.readError(err)
}

// kind asks for the type of a key; "none" if it is not there.
func (s *Source) kind(ctx context.Context, key string) (string, error) {
	m, err := s.do(ctx, 1, s.client.B().Type().Key(key).Build())
	if err != nil {
		return "", err
	}
	text, err := m.ToString()
	return text, s.readError(err)
}

// kinds asks for the types of keys.
func (s *Source) kinds(ctx context.Context, keys []string) ([]string, error) {
	cmds := make([]rueidis.Completed, len(keys))
	for i, key := range keys {
		cmds[i] = s.client.B().Type().Key(key).Build()
	}
	answers, err := s.all(ctx, cmds...)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(keys))
	for i := range answers {
		if out[i], err = answers[i].ToString(); err != nil {
			return nil, s.readError(err)
		}
	}
	return out, nil
}

// infoField finds a field in an answer of INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}
