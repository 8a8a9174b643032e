package dev.waza.intellij

import com.intellij.ide.trustedProjects.TrustedProjects
import com.intellij.notification.NotificationAction
import com.intellij.notification.NotificationGroupManager
import com.intellij.notification.NotificationType
import com.intellij.openapi.Disposable
import com.intellij.openapi.application.ApplicationInfo
import com.intellij.openapi.application.ApplicationManager
import com.intellij.openapi.options.ShowSettingsUtil
import com.intellij.openapi.project.Project
import dev.waza.client.DaemonProcess
import dev.waza.client.Listener
import dev.waza.client.WazaClient
import java.nio.file.Path

/** The project's daemon. It starts on first use and ends with the project. */
class WazaService(private val project: Project) : Disposable {
    private var running: WazaClient? = null // guarded by this

    /**
     * Returns the client, and starts the daemon if needed. Suites are programs: only trusted
     * projects run them.
     */
    @Synchronized
    fun client(): WazaClient {
        check(TrustedProjects.isProjectTrusted(project)) { "Trust the project to run its suites." }
        return (running ?: make().also { running = it }).also { it.start() }
    }

    private fun make(): WazaClient {
        val settings = WazaSettings.get()
        val folder = project.basePath?.let { Path.of(it) }
        val daemon = DaemonProcess(settings.program, settings.arguments, folder, settings.environment)
        val options = WazaClient.Options.of("JetBrains", ApplicationInfo.getInstance().fullVersion, listOfNotNull(folder))
        return WazaClient(daemon, options, Hearing())
    }

    /** Ends the daemon; the next use starts one with the new settings. */
    fun settingsChanged() = leave()

    override fun dispose() = leave()

    /** Closing waits for the daemon's cleanup, so it runs in the background. */
    private fun leave() {
        val old = synchronized(this) { running.also { running = null } } ?: return
        ApplicationManager.getApplication().executeOnPooledThread { old.close() }
    }

    private inner class Hearing : Listener {
        override fun state(state: Listener.State, why: String) {
            if (state == Listener.State.FAILED && !project.isDisposed) {
                notify(why)
            }
        }
    }

    private fun notify(why: String) {
        NotificationGroupManager.getInstance().getNotificationGroup("Waza")
            .createNotification("Waza is not running", why, NotificationType.ERROR)
            .addAction(NotificationAction.createSimple("Open settings") {
                ShowSettingsUtil.getInstance().showSettingsDialog(project, WazaConfigurable::class.java)
            })
            .addAction(NotificationAction.createSimpleExpiring("Try again") { client() })
            .notify(project)
    }

    companion object {
        fun get(project: Project): WazaService = project.getService(WazaService::class.java)
    }
}
