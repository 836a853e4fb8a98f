# frozen_string_literal: true

# The gem for one platform, with the library inside. packaging/packages/ruby.sh puts the files that are named here
# beside this file.
Gem::Specification.new do |spec|
  here = Gem::Platform.local

  spec.name = "redlock-native"
  spec.version = File.read("Cargo.toml")[/^version = "(.*)"/, 1]
  # Without the name of the C library: RubyGems before 3.3.22 does not know it.
  spec.platform = Gem::Platform.new([here.cpu, here.os, nil])
  spec.summary = "Distributed locks on a majority of independent Redis or Valkey servers"
  spec.description = "Locks for processes on different machines, held on a majority of independent Redis or Valkey " \
                     "servers (the Redlock algorithm), through the C library redlock, which is in the gem."
  spec.authors = ["The redlock authors"]
  spec.homepage = "https://redlock.example"
  spec.license = "MIT"
  spec.required_ruby_version = ">= 2.7"
  spec.files = Dir["lib/**/*", "*.md", "LICENSE", "THIRD-PARTY.txt"].sort
  spec.metadata = { "rubygems_mfa_required" => "true" }
  # From Ruby 4.0 on, fiddle is a bundled gem, and Bundler needs it as a dependency.
  spec.add_dependency "fiddle", "~> 1.0"
end
