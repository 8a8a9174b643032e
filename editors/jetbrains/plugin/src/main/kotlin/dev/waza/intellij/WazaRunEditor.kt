package dev.waza.intellij

import com.intellij.openapi.fileChooser.FileChooserDescriptorFactory
import com.intellij.openapi.options.SettingsEditor
import com.intellij.openapi.ui.TextFieldWithBrowseButton
import com.intellij.ui.JBIntSpinner
import com.intellij.ui.components.JBTextField
import com.intellij.util.ui.FormBuilder
import javax.swing.JComponent

/** The form of a run configuration. */
class WazaRunEditor : SettingsEditor<WazaRunConfiguration>() {
    private val suite = TextFieldWithBrowseButton()
    private val tasks = JBTextField()
    private val trials = JBIntSpinner(0, 0, 1_000_000)

    override fun createEditor(): JComponent {
        suite.addBrowseFolderListener("Suite", null, null, FileChooserDescriptorFactory.createSingleFileDescriptor("yaml"))
        tasks.emptyText.text = "All tasks"
        return FormBuilder.createFormBuilder()
            .addLabeledComponent("Suite:", suite)
            .addLabeledComponent("Tasks:", tasks)
            .addTooltip("Ids or globs, separated by spaces.")
            .addLabeledComponent("Trials per task:", trials)
            .addTooltip("0 uses the value of the suite.")
            .panel
    }

    override fun resetEditorFrom(configuration: WazaRunConfiguration) {
        suite.setText(configuration.values.suite.orEmpty())
        tasks.text = configuration.values.tasks.orEmpty()
        trials.number = configuration.values.trials
    }

    override fun applyEditorTo(configuration: WazaRunConfiguration) {
        configuration.values.suite = suite.text
        configuration.values.tasks = tasks.text
        configuration.values.trials = trials.number
    }
}
