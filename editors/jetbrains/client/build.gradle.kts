plugins { `java-library` }

java { toolchain { languageVersion = JavaLanguageVersion.of(17) } }

// The tests want the daemon and the shared dialogues, which the script ../test gives them.
tasks.named("test") { enabled = false }
tasks.named("compileTestJava") { enabled = false }
