// Command docs makes a static site of the folder docs/: a page of HTML for each page of Markdown, the
// same links, one style sheet, no scripts. Its contents are those of docs/README.md.
//
//	go run ./test/docs dist/site
//
// Its tests run every code block of the documentation and follow every link.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docs FOLDER")
		os.Exit(2)
	}
	n, err := build(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s\n", n, os.Args[1])
}
