package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rollcall": main})
}

// TestScripts runs the real command line.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"CollegeMsg.txt.gz", "apache_access.log.gz"} {
				b, err := os.ReadFile("../../testdata/" + name)
				if err != nil {
					return err
				}
				if err := os.WriteFile(e.WorkDir+"/"+name, b, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// fits FILE: no line of the output is wider than a terminal.
			"fits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: fits stdout|stderr")
				}
				for line := range strings.SplitSeq(ts.ReadFile(args[0]), "\n") {
					if len([]rune(line)) > 80 {
						ts.Fatalf("wider than 80 columns: %s", line)
					}
				}
			},
		},
	})
}
