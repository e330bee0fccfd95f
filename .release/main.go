// Command release writes what a release of meshctl consists of: the container
// image, and the archives with their checksums, SBOMs and krew manifest.
//
//	go run . [flags] image|archives|supply
//
// It is a module of its own, so that meshctl itself needs no image libraries. ko was
// not chosen, because it can only build upon an image of a registry; goreleaser was
// not, because it needs a newer Go than meshctl does. What is written depends on the
// commit and the version alone: the same commit gives the same bytes in any folder.
//
// Files: build.go compiles, image.go makes the image, archive.go packs, krew.go and
// archives.go describe what was packed, supply.go checks what a binary consists of.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// options are the flags.
type options struct {
	// source is the folder of the repository, out the one to write to.
	source, out string
	// version is empty where the tags and commits of the repository say it.
	version string
	// platforms are like linux/amd64.
	platforms []string
	// sbom is the path of cyclonedx-gomod; empty means no SBOMs.
	sbom string
	// url is where the archives will be found: url/VERSION/ARCHIVE.
	url string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	var platforms string
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.source, "source", "..", "`folder` of the repository")
	flags.StringVar(&o.out, "out", "../dist", "`folder` to write to")
	flags.StringVar(&o.version, "version", "", "`version`, if not that of the commit")
	flags.StringVar(&platforms, "platforms", "", "comma-separated `platforms`, if not all")
	flags.StringVar(&o.sbom, "cyclonedx-gomod", "", "`path` of the program that writes SBOMs")
	flags.StringVar(&o.url, "url", "https://github.com/meshctl/meshctl/releases/download", "`URL` below which the archives will be found")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if platforms != "" {
		o.platforms = strings.Split(platforms, ",")
	}
	for _, path := range []*string{&o.source, &o.out} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("release: %s: %w", *path, err)
		}
		*path = absolute
	}
	switch flags.Arg(0) {
	case "image":
		return image(ctx, o)
	case "archives":
		return archives(ctx, o)
	case "supply":
		return supply(ctx, o)
	}
	return fmt.Errorf("release: unknown argument %q; say image, archives or supply", flags.Arg(0))
}
