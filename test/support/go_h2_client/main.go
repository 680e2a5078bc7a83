// Speaks HTTP/2 with a server of test/e2e/test_h2_clients.py, all on one connection, and prints what
// each case came to: a line of JSON.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"time"
)

const (
	tenMB  = 10_000_000
	beside = 20 // requests beside the slow one
)

type result map[string]any

type peer struct {
	client *http.Client
	url    string
}

func main() {
	ca := flag.String("ca", "", "a PEM `file`: whom to trust")
	flag.Parse()
	if err := run(*ca, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "go_h2_client:", err)
		os.Exit(1)
	}
}

func run(ca, url string) error {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s has no certificate", ca)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true,
		ExpectContinueTimeout: 10 * time.Minute}
	p := peer{&http.Client{Transport: transport, Timeout: 2 * time.Minute}, url}
	cases := []struct {
		name string
		run  func() (result, error)
	}{
		{"get", p.get}, {"head", p.head}, {"post", p.post}, {"trailers", p.trailers},
		{"continue", p.continued}, {"slow reader", p.slowReader}, {"both ways", p.bothWays},
	}
	for _, one := range cases {
		found, err := one.run()
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		found["case"] = one.name
		if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
			return err
		}
	}
	return nil
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func random(size int) []byte {
	data := make([]byte, size)
	if _, err := rand.Read(data); err != nil {
		panic(err)
	}
	return data
}

// Sends a request and reads all of the response.
func (p *peer) do(request *http.Request) (*http.Response, []byte, error) {
	response, err := p.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

func (p *peer) ask(method, path string, body io.Reader) (*http.Response, []byte, error) {
	request, err := http.NewRequest(method, p.url+path, body)
	if err != nil {
		return nil, nil, err
	}
	return p.do(request)
}

func (p *peer) get() (result, error) {
	response, body, err := p.ask("GET", "/hello", nil)
	if err != nil {
		return nil, err
	}
	return result{"status": response.StatusCode, "protocol": response.Proto, "body": string(body)}, nil
}

func (p *peer) head() (result, error) {
	response, body, err := p.ask("HEAD", "/hello", nil)
	if err != nil {
		return nil, err
	}
	return result{"status": response.StatusCode, "length": response.ContentLength, "body": string(body)}, nil
}

func (p *peer) post() (result, error) {
	sent := random(tenMB)
	known, body, err := p.ask("POST", "/echo", bytes.NewReader(sent))
	if err != nil {
		return nil, err
	}
	sameKnown := bytes.Equal(sent, body)
	// A reader whose length it cannot know: no Content-Length.
	unknown, body, err := p.ask("POST", "/echo", io.MultiReader(bytes.NewReader(sent)))
	if err != nil {
		return nil, err
	}
	return result{"statuses": []int{known.StatusCode, unknown.StatusCode},
		"same": []bool{sameKnown, bytes.Equal(sent, body)}}, nil
}

func (p *peer) trailers() (result, error) {
	request, err := http.NewRequest("POST", p.url+"/trailers", io.MultiReader(bytes.NewReader([]byte("hello"))))
	if err != nil {
		return nil, err
	}
	request.Trailer = http.Header{"X-Sum": {"5"}}
	response, body, err := p.do(request)
	if err != nil {
		return nil, err
	}
	return result{"status": response.StatusCode, "body": string(body), "trailer": response.Trailer.Get("X-Seen")}, nil
}

func (p *peer) continued() (result, error) {
	request, err := http.NewRequest("POST", p.url+"/continue", bytes.NewReader([]byte("hello")))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Expect", "100-continue")
	told := false
	trace := &httptrace.ClientTrace{Got100Continue: func() { told = true }}
	response, body, err := p.do(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	if err != nil {
		return nil, err
	}
	return result{"status": response.StatusCode, "told": told, "body": string(body)}, nil
}

// One response is not read until all of the others are complete.
func (p *peer) slowReader() (result, error) {
	slow, err := p.client.Get(p.url + "/large")
	if err != nil {
		return nil, err
	}
	defer slow.Body.Close()
	var group sync.WaitGroup
	hashes := make([]string, beside)
	failures := make([]error, beside)
	for number := range hashes {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			_, body, err := p.ask("GET", "/medium", nil)
			hashes[number], failures[number] = hash(body), err
		}(number)
	}
	group.Wait()
	different := map[string]bool{}
	for number, one := range hashes {
		if failures[number] != nil {
			return nil, failures[number]
		}
		different[one] = true
	}
	body, err := io.ReadAll(slow.Body)
	if err != nil {
		return nil, err
	}
	return result{"beside": beside, "alike": len(different) == 1, "first": hashes[0], "slow": hash(body)}, nil
}

func (p *peer) bothWays() (result, error) {
	sent := random(tenMB)
	var group sync.WaitGroup
	var answer, body []byte
	var failures [2]error
	group.Add(2)
	go func() {
		defer group.Done()
		_, answer, failures[0] = p.ask("POST", "/hash", bytes.NewReader(sent))
	}()
	go func() {
		defer group.Done()
		_, body, failures[1] = p.ask("GET", "/large", nil)
	}()
	group.Wait()
	for _, failure := range failures {
		if failure != nil {
			return nil, failure
		}
	}
	return result{"up": string(answer) == hash(sent), "down": hash(body)}, nil
}
