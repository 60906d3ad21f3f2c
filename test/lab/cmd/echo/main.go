// Command echo is what the lab's pods run. It answers HTTP requests and UDP
// packets with the pod's name and the address the request came from; with -get
// or -send it is the client, and with -pause the pause container.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", ":8080", "address to answer HTTP on")
	udp := flag.String("udp", "", "address to answer UDP on")
	get := flag.String("get", "", "URL to fetch instead of serving")
	send := flag.String("send", "", "address to send a UDP packet to instead of serving")
	n := flag.Int("n", 1, "number of requests")
	drain := flag.Duration("drain", 0, "go on serving this long after SIGTERM")
	pause := flag.Bool("pause", false, "wait for a signal and bury orphans")
	flag.Parse()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	switch {
	case *pause:
		<-stop
	case *get != "":
		os.Exit(repeat(*n, func() (string, error) { return fetch(*get) }))
	case *send != "":
		os.Exit(repeat(*n, func() (string, error) { return ask(*send) }))
	default:
		serve(*listen, *udp)
		<-stop
		time.Sleep(*drain)
	}
}

func repeat(n int, do func() (string, error)) (code int) {
	for range n {
		answer, err := do()
		if err != nil {
			fmt.Println("error:", err)
			code = 1
			continue
		}
		fmt.Print(answer)
	}
	return code
}

func fetch(url string) (string, error) {
	c := http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	return string(body), err
}

func ask(address string) (string, error) {
	c, err := net.Dial("udp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(3 * time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte("?\n")); err != nil {
		return "", err
	}
	answer := make([]byte, 512)
	n, err := c.Read(answer)
	return string(answer[:n]), err
}

func serve(listen, udp string) {
	host, _ := os.Hostname()
	answer := func(from string) string {
		client, _, _ := net.SplitHostPort(from)
		return fmt.Sprintf("%s from %s\n", host, client)
	}
	if udp != "" {
		c, err := net.ListenPacket("udp", udp)
		fatal(err)
		go func() {
			packet := make([]byte, 512)
			for {
				_, from, err := c.ReadFrom(packet)
				fatal(err)
				_, _ = c.WriteTo([]byte(answer(from.String())), from)
			}
		}()
	}
	go func() {
		fatal(http.ListenAndServe(listen, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, answer(r.RemoteAddr))
		})))
	}()
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
