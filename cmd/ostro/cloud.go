package main

// The binary reaches the blob stores of the cloud providers: s3://, azblob://
// and gs:// beside file://.
import _ "github.com/ostrodb/ostro/engine/device/cloud"
