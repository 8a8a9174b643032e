package dev.waza.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NamedNodeMap;
import org.w3c.dom.NodeList;

/** Checks of the plugin that work without the platform: its parts fit together. */
class PluginTest {
  private static final Path PLUGIN = Path.of(System.getProperty("waza.plugin"), "src", "main");
  private static final Path RESOURCES = PLUGIN.resolve("resources");

  private static Document parse(Path file) throws Exception {
    DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
    factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
    return factory.newDocumentBuilder().parse(file.toFile());
  }

  private static List<Path> files(Path root, String end) throws IOException {
    try (Stream<Path> all = Files.walk(root)) {
      return all.filter(p -> p.toString().endsWith(end)).sorted().toList();
    }
  }

  private static Set<String> all(String pattern, List<Path> files) throws IOException {
    Set<String> found = new TreeSet<>();
    for (Path f : files) {
      Matcher m = Pattern.compile(pattern, Pattern.MULTILINE).matcher(Files.readString(f));
      while (m.find()) {
        found.add(m.group(1));
      }
    }
    return found;
  }

  /** Returns the plugin's classes by their full names. */
  private static Set<String> classes() throws IOException {
    Set<String> names = new TreeSet<>();
    for (Path f : files(PLUGIN.resolve("kotlin"), ".kt")) {
      String folder = PLUGIN.resolve("kotlin").relativize(f.getParent()).toString().replace('/', '.');
      assertEquals(Set.of(folder), all("^package (\\S+)$", List.of(f)), f + " is not in the directory of its package");
      all("^(?:class|object) (\\w+)", List.of(f)).forEach(name -> names.add(folder + "." + name));
    }
    return names;
  }

  @Test
  void descriptorsNameExistingClasses() throws Exception {
    Set<String> classes = classes();
    List<String> named = new ArrayList<>();
    for (Path f : files(RESOURCES, ".xml")) {
      NodeList all = parse(f).getElementsByTagName("*");
      for (int i = 0; i < all.getLength(); i++) {
        NamedNodeMap attributes = all.item(i).getAttributes();
        for (int j = 0; j < attributes.getLength(); j++) {
          String value = attributes.item(j).getNodeValue();
          if (value.startsWith("dev.waza.intellij.")) {
            named.add(value);
            assertTrue(classes.contains(value), f + " names " + value + ", which does not exist");
          }
          if (attributes.item(j).getNodeName().equals("config-file")) {
            assertTrue(Files.exists(f.resolveSibling(value)), value + " does not exist");
          }
        }
      }
    }
    assertEquals(7, named.size(), named.toString());
  }

  @Test
  void descriptorHasTheRequiredElements() throws Exception {
    Element root = parse(RESOURCES.resolve("META-INF/plugin.xml")).getDocumentElement();
    assertEquals("idea-plugin", root.getTagName());
    assertEquals("dev.waza.intellij", text(root, "id"));
    assertEquals("Waza", text(root, "name"));
    assertFalse(text(root, "vendor").isEmpty());
    assertTrue(text(root, "description").strip().length() > 40, "required by the marketplace");
  }

  private static String text(Element root, String tag) {
    NodeList found = root.getElementsByTagName(tag);
    assertEquals(1, found.getLength(), tag);
    return found.item(0).getTextContent();
  }

  @Test
  void codeNamesExistingClasses() throws Exception {
    List<Path> sources = files(PLUGIN.resolve("kotlin"), ".kt");
    for (String icon : all("IconLoader\\.getIcon\\(\"([^\"]+)\"", sources)) {
      assertTrue(Files.exists(RESOURCES.resolve(icon.substring(1))), icon);
      assertTrue(Files.exists(RESOURCES.resolve(icon.substring(1).replace(".svg", "_dark.svg"))), icon + " for dark themes");
    }
    for (Path svg : files(RESOURCES, ".svg")) {
      assertEquals("svg", parse(svg).getDocumentElement().getTagName(), svg.toString());
    }
    Set<String> used = all("import (dev\\.waza\\.client\\.\\w+)", sources);
    assertTrue(used.contains("dev.waza.client.WazaClient"), used.toString());
    for (String name : used) {
      Class.forName(name); // of the compiled client
    }
    Set<String> own = classes();
    for (String name : all("import (dev\\.waza\\.intellij\\.\\w+)", sources)) {
      assertTrue(own.contains(name), name);
    }
    String group = all("getNotificationGroup\\(\"(\\w+)\"", sources).iterator().next();
    assertTrue(Files.readString(RESOURCES.resolve("META-INF/plugin.xml")).contains("<notificationGroup id=\"" + group + "\""), group);
  }
}
