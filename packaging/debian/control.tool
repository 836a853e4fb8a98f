Package: redlock
Source: redlock
Version: @VERSION@
Section: utils
Priority: optional
Architecture: @ARCH@
Maintainer: @MAINTAINER@
Installed-Size: @SIZE@
Depends: @DEPENDS@
Recommends: ca-certificates
Description: run a program while a distributed lock is held
 Programs on different machines take a lock that is held on a majority of
 independent Redis or Valkey servers (the Redlock algorithm), as flock does it
 on one machine. A program whose lock is lost is stopped before somebody else
 can have it.
 .
 This package has the command redlock, which also looks after the servers. It
 needs no other package of this source.
