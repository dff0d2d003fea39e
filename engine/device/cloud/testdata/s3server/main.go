// Command s3server serves a directory as S3, for the tests of the blob tier. It is
// versitygw with its POSIX backend and nothing else, which builds in half the time of
// the whole gateway (that one: go tool -modfile=tools/go.mod versitygw).
//
//	s3server ADDRESS DIR      credentials are ostro-test, ostro-test-secret
package main

import (
	"context"
	"log"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: s3server ADDRESS DIR")
	}
	backend, err := posix.New(os.Args[2], meta.XattrMeta{}, posix.PosixOpts{NewDirPerm: 0o755, Concurrency: 100})
	if err != nil {
		log.Fatalf("serve %s: %v", os.Args[2], err)
	}
	err = embedgw.RunVersityGW(context.Background(), backend, &embedgw.Config{
		RootUserAccess: "ostro-test", RootUserSecret: "ostro-test-secret",
		Ports:          []string{os.Args[1]},
		MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 10000,
		KeepAlive: true, Quiet: true,
	})
	log.Fatalf("serve %s on %s: %v", os.Args[2], os.Args[1], err)
}
