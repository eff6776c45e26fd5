// Command release builds what is published: for each platform an archive with the static
// binary and the licences of all that is in it, beside it a list of that (an SBOM in the
// form of CycloneDX), and the checksums of all files. release.sh runs it.
//
// The same commit, the same Go and the same SOURCE_DATE_EPOCH give the same bytes.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing waits for the context
	}
}

// run reads the command line and makes the release.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	r := release{}
	flags.StringVar(&r.out, "out", "dist", "the folder for the release, which is emptied first")
	flags.StringVar(&r.version, "version", "", "the version (default: as git describes the commit)")
	only := flags.Bool("licences", false, "only print the licences of all that the binary of one platform holds")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: release [flags] [platform …]\n\nPlatforms: %s.\n", strings.Join(platforms(), " "))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	r.platforms = flags.Args()
	if len(r.platforms) == 0 {
		r.platforms = platforms()
	}
	if *only {
		return printLicences(ctx, os.Stdout, r.platforms[0])
	}
	if err := r.identify(ctx); err != nil {
		return err
	}
	return r.make(ctx)
}

// printLicences prints what goes with the binary of a platform, for an image.
func printLicences(ctx context.Context, to io.Writer, platform string) error {
	parts, err := partsOf(ctx, platform)
	if err != nil {
		return err
	}
	if err := checkLicences(parts); err != nil {
		return err
	}
	_, err = to.Write(licences(parts))
	return err
}

// identify finds out the version and the time that the files of the release have.
func (r *release) identify(ctx context.Context) error {
	if r.version == "" {
		out, err := output(ctx, nil, "git", "describe", "--tags", "--always")
		if err != nil {
			return fmt.Errorf("the version is not known (set -version): %w", err)
		}
		r.version = strings.TrimSpace(string(out))
	}
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		out, err := output(ctx, nil, "git", "log", "-1", "--format=%ct")
		if err != nil {
			return fmt.Errorf("the time of the commit is not known (set SOURCE_DATE_EPOCH): %w", err)
		}
		seconds = strings.TrimSpace(string(out))
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: must be seconds since 1970, is %q", seconds)
	}
	r.time = time.Unix(at, 0).UTC()
	return nil
}

// output runs a program and returns what it prints.
func output(ctx context.Context, environ []string, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), environ...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out, nil
}
