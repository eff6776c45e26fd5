package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type sampleJSON struct {
	At       instant                `json:"at"`
	Online   int                    `json:"online"`
	Sessions int                    `json:"sessions"`
	Logins   int                    `json:"logins"`
	Ends     map[rollcall.Cause]int `json:"ends"`
	Beats    int                    `json:"beats"`
}

// history shows who was online in the last day.
func (c *onlineCmd) history(a *app, asked *client.Client) error {
	server, err := asked.Server(a.ctx)
	if err != nil {
		return err
	}
	to := server.Now
	samples, err := asked.Samples(a.ctx, rollcall.SampleQuery{From: to.Add(-chartSpan), To: to})
	if err != nil {
		return err
	}
	if !c.JSON {
		return drawHistory(a.stdout, samples, to)
	}
	values := make([]any, len(samples))
	for i, s := range samples {
		values[i] = sampleJSON{instantOf(s.At), s.Online, s.Sessions, s.Logins, s.Ends, s.Beats}
	}
	return printJSON(a.stdout, values...)
}

// The chart has a cell for each 20 minutes, and a time below every eighteenth.
const (
	chartSpan  = 24 * time.Hour
	chartCells = 72
	chartCell  = chartSpan / chartCells
	chartTick  = 18
)

// drawHistory draws the samples of the day up to an instant: in each cell the greatest
// count of its minutes, from 0 up, and nothing where no minute was sampled.
func drawHistory(w io.Writer, samples []rollcall.Sample, to time.Time) error {
	if len(samples) == 0 {
		_, err := fmt.Fprintln(w, "There is no sample of the last day yet. One is taken each minute.")
		return err
	}
	from := to.Add(-chartSpan)
	most, least, sum := samples[0], samples[0], 0
	cells := make([]int, chartCells) // the greatest count + 1, 0 for none
	for _, s := range samples {
		sum += s.Online
		if s.Online > most.Online {
			most = s
		}
		if s.Online < least.Online {
			least = s
		}
		if i := int(s.At.Sub(from) / chartCell); i >= 0 && i < chartCells {
			cells[i] = max(cells[i], s.Online+1)
		}
	}
	at := func(s rollcall.Sample) string { return fmt.Sprintf("%d at %s", s.Online, s.At.Local().Format("15:04")) }
	_, err := fmt.Fprintf(w, "Users online, %s to %s\nmost %s, least %s, mean %d\n\n%s\n%s\n",
		moment(from), moment(to), at(most), at(least), (sum+len(samples)/2)/len(samples), bars(cells, most.Online), chartTimes(from))
	return err
}

// bars draws the counts of cells, which are one more than they say.
func bars(cells []int, most int) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, n := range cells {
		switch {
		case n == 0:
			b.WriteRune(' ')
		case n == 1:
			b.WriteRune('_')
		default:
			b.WriteRune(levels[(n-1)*(len(levels)-1)/most])
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// chartTimes is the line of times below a chart.
func chartTimes(from time.Time) string {
	var b strings.Builder
	for i := 0; i < chartCells; i += chartTick {
		fmt.Fprintf(&b, "%-*s", chartTick, from.Add(time.Duration(i)*chartCell).Local().Format("15:04"))
	}
	return strings.TrimRight(b.String(), " ")
}
