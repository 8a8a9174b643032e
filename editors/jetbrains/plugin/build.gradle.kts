plugins {
    id("java")
    id("org.jetbrains.kotlin.jvm") version "1.9.25"
    id("org.jetbrains.intellij.platform") version "2.1.0"
}

group = "dev.waza"
version = "0.1.0"

repositories {
    mavenCentral()
    intellijPlatform { defaultRepositories() }
}

dependencies {
    implementation(project(":client"))
    intellijPlatform {
        // IntelliJ IDEA Ultimate, for its language server API; the plugin also runs without it.
        intellijIdeaUltimate("2023.3.8")
        bundledPlugin("org.jetbrains.plugins.yaml")
        pluginVerifier()
        zipSigner()
    }
}

kotlin { jvmToolchain(17) }

intellijPlatform {
    instrumentCode = false // the plugin itself has no forms and no Java
    pluginConfiguration {
        ideaVersion {
            sinceBuild = "233"
            untilBuild = provider { null }
        }
    }
    pluginVerification { ides { recommended() } }
    signing {
        certificateChain = providers.environmentVariable("CERTIFICATE_CHAIN")
        privateKey = providers.environmentVariable("PRIVATE_KEY")
        password = providers.environmentVariable("PRIVATE_KEY_PASSWORD")
    }
    publishing { token = providers.environmentVariable("PUBLISH_TOKEN") }
}
