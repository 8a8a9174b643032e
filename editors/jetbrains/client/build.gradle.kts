plugins { `java-library` }

java { toolchain { languageVersion = JavaLanguageVersion.of(17) } }

// The tests need the daemon and the shared dialogues, which the script ../test provides.
tasks.named("test") { enabled = false }
tasks.named("compileTestJava") { enabled = false }
