module poolwright/peers/vcsim

go 1.24

require github.com/vmware/govmomi v0.51.0

require github.com/google/uuid v1.6.0 // indirect
