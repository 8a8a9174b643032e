package dev.waza.intellij

import com.intellij.execution.lineMarker.ExecutorAction
import com.intellij.execution.lineMarker.RunLineMarkerContributor
import com.intellij.icons.AllIcons
import com.intellij.psi.PsiElement

/** The run icons in the gutter, next to the name of a suite and the id of a task. */
class WazaLineMarker : RunLineMarkerContributor() {
    override fun getInfo(element: PsiElement): Info? {
        val target = SuiteFiles.targetOf(element) ?: return null
        val icon = if (target.task == null) AllIcons.RunConfigurations.TestState.Run_run else AllIcons.RunConfigurations.TestState.Run
        val title = if (target.task == null) "Run suite" else "Run task " + target.task
        return Info(icon, ExecutorAction.getActions(0)) { title }
    }
}
