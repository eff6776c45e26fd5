package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

// growth is how a figure of both sides changes from one size to the next.
type growth struct {
	title, note string
	sizes       []string // the first cells of the rows
	behind      string   // the cells behind the size, each with | before it
	figure      figure   // its row is made of the two
}

func growths() []growth {
	return []growth{
		{"Memory of a user seen", "by users; lower is better", []string{"100k", "1M", "10M"}, "", figure{"Memory of one user seen", "", "a user", "a user"}},
		{"Memory of a session", "by sessions; lower is better", []string{"10k", "100k", "1M"}, "", figure{"Memory of one session", "", "a session", "a session"}},
		{"Heartbeats a second", "by users; higher is better", []string{"100k", "1M", "10M"}, "", figure{"Heartbeats of random users", "", "Rollcall", "Redis"}},
		{"Durable logins a second", "by logins, of 64 callers; higher is better", []string{"2k", "20k", "200k"}, "|64", figure{"Durable logins", "", "Rollcall", "Redis"}},
		{"Which of 500 friends are online", "by users seen; lower is better", []string{"5k", "50k", "500k"}, "|500", figure{"Friends online", "", "alone", "Redis"}},
		{"Monthly active users", "by users; lower is better", []string{"1M", "10M", "100M"}, "|DAU, WAU and MAU-28", figure{"Attendance", "", "Rollcall", "Redis"}},
	}
}

// grow draws a chart for each figure.
func grow(w *bytes.Buffer, report string) error {
	begin(w, 696, "How each figure changes as sizes grow tenfold", " Both axes are logarithmic.")
	for i, g := range growths() {
		if err := g.draw(w, report, 20+(i%2)*420, 76+(i/2)*206); err != nil {
			return err
		}
	}
	return nil
}

// draw writes the chart with its upper left corner at x and y.
func (g growth) draw(w *bytes.Buffer, report string, x, y int) error {
	const left, top, width, height = 60, 62, 260, 84 // of the lines
	var texts [2][]string
	var values [2][]float64
	least, most := math.Inf(1), 0.0
	for _, size := range g.sizes {
		f := g.figure
		f.row = size + g.behind
		ours, redis, err := f.find(report)
		if err != nil {
			return err
		}
		for side, cell := range []string{ours, redis} {
			v, err := value(cell)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", g.title, size, err)
			}
			texts[side], values[side] = append(texts[side], cell), append(values[side], v)
			least, most = min(least, v), max(most, v)
		}
	}
	fmt.Fprintf(w, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", x, y+14, html.EscapeString(g.title))
	fmt.Fprintf(w, "<text class=\"note\" x=\"%d\" y=\"%d\">%s</text>\n", x, y+32, html.EscapeString(g.note))
	bottom := y + top + height + 24
	fmt.Fprintf(w, "<line class=\"axis\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", x+left-40, bottom, x+left+width+40, bottom)
	across := func(i int) int { return x + left + i*width/(len(g.sizes)-1) }
	for i, size := range g.sizes {
		fmt.Fprintf(w, "<text class=\"note\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n", across(i), bottom+16, size)
	}
	for side, name := range []string{"ours", "redis"} {
		var points []string
		for i, v := range values[side] {
			up := 0.5
			if most > least {
				up = math.Log(v/least) / math.Log(most/least)
			}
			down := y + top + int((1-up)*height)
			points = append(points, fmt.Sprintf("%d,%d", across(i), down))
			fmt.Fprintf(w, "<circle class=\"%s\" cx=\"%d\" cy=\"%d\" r=\"4\"/>\n", name, across(i), down)

			// The label stands on the side of the dot where the other line is not.
			label := down + 17
			if other := values[1-side][i]; v > other || v == other && side == 0 {
				label = down - 8
			}
			fmt.Fprintf(w, "<text text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n", across(i), label, texts[side][i])
		}
		fmt.Fprintf(w, "<polyline class=\"line %s\" points=\"%s\"/>\n", name, strings.Join(points, " "))
	}
	for side, name := range []string{"Rollcall", "Redis"} {
		fmt.Fprintf(w, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" rx=\"2\"/>\n", []string{"ours", "redis"}[side], x+250+side*76, y+5)
		fmt.Fprintf(w, "<text class=\"note\" x=\"%d\" y=\"%d\">%s</text>\n", x+264+side*76, y+14, name)
	}
	return nil
}
