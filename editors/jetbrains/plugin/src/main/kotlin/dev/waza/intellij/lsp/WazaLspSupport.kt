package dev.waza.intellij.lsp

import com.intellij.execution.configurations.GeneralCommandLine
import com.intellij.ide.trustedProjects.TrustedProjects
import com.intellij.openapi.project.Project
import com.intellij.openapi.vfs.VirtualFile
import com.intellij.platform.lsp.api.LspServerSupportProvider
import com.intellij.platform.lsp.api.ProjectWideLspServerDescriptor
import dev.waza.intellij.SuiteFiles
import dev.waza.intellij.WazaSettings

/**
 * Findings, completion and documentation from `waza lsp`, in IDEs with the platform's language
 * server API.
 */
class WazaLspSupport : LspServerSupportProvider {
    override fun fileOpened(project: Project, file: VirtualFile, serverStarter: LspServerSupportProvider.LspServerStarter) {
        if (SuiteFiles.isSuite(file) && TrustedProjects.isProjectTrusted(project)) {
            serverStarter.ensureServerStarted(WazaLspServer(project))
        }
    }
}

/**
 * How to start the server. Task files can have any name: the server reports nothing about other
 * YAML files.
 */
private class WazaLspServer(project: Project) : ProjectWideLspServerDescriptor(project, "Waza") {
    override fun isSupportedFile(file: VirtualFile): Boolean = file.extension == "yaml" || file.extension == "yml"

    override fun createCommandLine(): GeneralCommandLine {
        val settings = WazaSettings.get()
        return GeneralCommandLine(listOf(settings.program, "lsp"))
            .withEnvironment(settings.environment)
            .withWorkDirectory(project.basePath)
            .withCharset(Charsets.UTF_8)
    }
}
