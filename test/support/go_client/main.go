// Asks for a URL several times, each time on a connection of its own, and prints what it found:
// a line of JSON for each request. The connections share a session cache, so all but the first
// can resume.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

type found struct {
	Status   int    `json:"status"`
	Protocol string `json:"protocol"`
	Version  string `json:"version"`
	Resumed  bool   `json:"resumed"`
	Alpn     string `json:"alpn"`
	Body     string `json:"body"`
}

func main() {
	ca := flag.String("ca", "", "a PEM `file`: whom to trust")
	name := flag.String("name", "", "the server's `name`")
	tls12 := flag.Bool("tls12", false, "speak nothing above TLS 1.2")
	times := flag.Int("times", 1, "how `often` to ask")
	flag.Parse()
	if err := run(*ca, *name, flag.Arg(0), *tls12, *times); err != nil {
		fmt.Fprintln(os.Stderr, "go_client:", err)
		os.Exit(1)
	}
}

func run(ca, name, url string, tls12 bool, times int) error {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s has no certificate", ca)
	}
	config := &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if tls12 {
		config.MaxVersion = tls.VersionTLS12
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	for ; times > 0; times-- {
		got, err := ask(client, url)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
			return err
		}
	}
	return nil
}

func ask(client *http.Client, url string) (*found, error) {
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	state := response.TLS
	version := map[uint16]string{tls.VersionTLS12: "TLSv1.2", tls.VersionTLS13: "TLSv1.3"}[state.Version]
	return &found{response.StatusCode, response.Proto, version, state.DidResume, state.NegotiatedProtocol,
		string(body)}, nil
}
