package dev.waza.intellij

import com.intellij.execution.configuration.EnvironmentVariablesComponent
import com.intellij.openapi.fileChooser.FileChooserDescriptorFactory
import com.intellij.openapi.options.Configurable
import com.intellij.openapi.project.ProjectManager
import com.intellij.openapi.ui.TextFieldWithBrowseButton
import com.intellij.ui.RawCommandLineEditor
import com.intellij.util.ui.FormBuilder
import javax.swing.JComponent
import javax.swing.JPanel

/** The page Settings | Tools | Waza. */
class WazaConfigurable : Configurable {
    private val path = TextFieldWithBrowseButton()
    private val arguments = RawCommandLineEditor()
    private val environment = EnvironmentVariablesComponent()

    override fun getDisplayName(): String = "Waza"

    override fun createComponent(): JComponent {
        path.addBrowseFolderListener("Path to Waza", null, null, FileChooserDescriptorFactory.createSingleFileNoJarsDescriptor())
        return FormBuilder.createFormBuilder()
            .addLabeledComponent("Path to waza:", path)
            .addTooltip("A path, or the name of a program on the PATH.")
            .addLabeledComponent("Arguments:", arguments)
            .addComponent(environment)
            .addComponentFillVertically(JPanel(), 0)
            .panel
    }

    override fun isModified(): Boolean {
        val state = WazaSettings.get().state
        return path.text != state.path.orEmpty() || arguments.text != state.arguments.orEmpty() || environment.envs != state.environment
    }

    override fun apply() {
        val state = WazaSettings.get().state
        state.path = path.text
        state.arguments = arguments.text
        state.environment = environment.envs.toMutableMap()
        ProjectManager.getInstance().openProjects.forEach { WazaService.get(it).settingsChanged() }
    }

    override fun reset() {
        val state = WazaSettings.get().state
        path.setText(state.path.orEmpty())
        arguments.setText(state.arguments.orEmpty())
        environment.envs = state.environment
    }
}
