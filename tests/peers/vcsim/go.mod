module poolwright/peers/vcsim

go 1.24

require github.com/vmware/govmomi v0.51.0

require (
	github.com/a8m/tree v0.0.0-20230208161321-36ae24ddad15 // indirect
	github.com/dougm/pretty v0.0.0-20160325215624-add1dbc86daf // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/rogpeppe/go-internal v1.9.0 // indirect
)
