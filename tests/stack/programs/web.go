// SPDX-License-Identifier: BSD-2-Clause

// An HTTP server of files, and its client:
//
//	web serve PORT DIRECTORY
//	web fetch COUNT URL
//
// The client prints the SHA-256 of each response, COUNT of them at the same time.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
)

func fetch(url string, digests chan<- string) {
	response, err := http.Get(url)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, response.Body); err != nil {
		log.Fatal(err)
	}
	digests <- fmt.Sprintf("%x", hash.Sum(nil))
}

func main() {
	if os.Args[1] == "serve" {
		log.Fatal(http.ListenAndServe("0.0.0.0:"+os.Args[2], http.FileServer(http.Dir(os.Args[3]))))
	}
	count, _ := strconv.Atoi(os.Args[2])
	digests := make(chan string)
	for n := 0; n < count; n++ {
		go fetch(os.Args[3], digests)
	}
	for n := 0; n < count; n++ {
		fmt.Println(<-digests)
	}
}
