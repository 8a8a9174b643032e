package dev.waza.intellij

import com.intellij.openapi.vfs.VirtualFile
import com.intellij.psi.PsiElement
import com.intellij.psi.util.PsiTreeUtil
import org.jetbrains.yaml.psi.YAMLFile
import org.jetbrains.yaml.psi.YAMLKeyValue
import org.jetbrains.yaml.psi.YAMLMapping
import org.jetbrains.yaml.psi.YAMLSequenceItem

/** Finds the lines of suites in editors that can be clicked. The daemon interprets the suites. */
object SuiteFiles {
    private val NAMES = setOf("eval.yaml", "eval.yml")

    fun isSuite(file: VirtualFile?): Boolean = file != null && file.name in NAMES

    /**
     * Returns what the element declares: a suite, by its top-level key name, or a task, by its id;
     * else null.
     */
    fun targetOf(element: PsiElement): Target? {
        val file = element.containingFile as? YAMLFile ?: return null
        val path = file.virtualFile?.takeIf { isSuite(it) }?.path ?: return null
        val key = element.parent as? YAMLKeyValue ?: return null
        if (key.key != element) {
            return null
        }
        val mapping = key.parent as? YAMLMapping ?: return null
        if (key.keyText == "name" && mapping.parent?.parent is YAMLFile) {
            return Target(path, null)
        }
        val item = mapping.parent as? YAMLSequenceItem ?: return null
        val list = PsiTreeUtil.getParentOfType(item, YAMLKeyValue::class.java) ?: return null
        val isTask = key.keyText == "id" && list.keyText == "tasks" && list.parent?.parent?.parent is YAMLFile
        return if (isTask) Target(path, key.valueText) else null
    }

    /** A suite, or a task of it. */
    class Target(val suite: String, val task: String?)
}
