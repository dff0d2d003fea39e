package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ostrodb/ostro/client"
)

// A server on its own, started with `ostro server --native-port 7379`, or any nodes of a cluster.
const url = "ostro://127.0.0.1:7379"

func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	if _, err := c.Do(ctx, client.Put(0, []byte("greeting"), []byte("hello"))); err != nil {
		log.Fatal(err)
	}
	r, err := c.Do(ctx, client.Get(0, []byte("greeting")))
	fmt.Println(string(r.Value), r.Version, err)
}

// Operations are asynchronous: begin many, then wait for them.
func ExampleClient_Go() {
	ctx := context.Background()
	c, err := client.Dial(ctx, url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	var adds []*client.Future
	for i := range 100 {
		adds = append(adds, c.Go(ctx, client.Add(0, fmt.Append(nil, "counter", i), 1)))
	}
	for _, f := range adds {
		r, err := f.Wait()
		fmt.Println(r.Int(), err)
	}
}

// A callback costs less than a future, and may begin the next operation.
func ExampleClient_Call() {
	ctx := context.Background()
	c, err := client.Dial(ctx, url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	done := make(chan struct{})
	c.Call(ctx, client.Get(0, []byte("a")), func(a client.Result, err error) {
		if err != nil {
			close(done)
			return
		}
		c.Call(ctx, client.Put(0, []byte("b"), a.Value), func(client.Result, error) { close(done) })
	})
	<-done
}

// A read-modify-write of one's own: try until nobody was faster.
func ExampleOp_IfVersion() {
	ctx := context.Background()
	c, err := client.Dial(ctx, url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	key := []byte("document")
	for {
		old, err := c.Do(ctx, client.Get(0, key))
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			log.Fatal(err)
		}
		_, err = c.Do(ctx, client.Put(0, key, append(old.Value, " and more"...)).IfVersion(old.Version))
		if !errors.Is(err, client.ErrConflict) {
			break
		}
	}
}

// Keys with the same {tag} live together, so they are written all or not at all.
func ExampleClient_MultiPut() {
	ctx := context.Background()
	c, err := client.Dial(ctx, url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	err = c.MultiPut(ctx, 0,
		client.Entry{Key: []byte("{user7}name"), Value: []byte("Ada")},
		client.Entry{Key: []byte("{user7}mail"), Value: []byte("ada@example.com")})
	fmt.Println(err)
}

func ExampleClient_Scan() {
	ctx := context.Background()
	c, err := client.Dial(ctx, url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for record, err := range c.Scan(ctx, 0, client.ScanOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s = %s\n", record.Key, record.Value)
	}
}
