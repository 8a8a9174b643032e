rootProject.name = "waza-intellij"

// The client is compiled with the plugin; ../test tests it without Gradle.
include(":client")
project(":client").projectDir = file("../client")
