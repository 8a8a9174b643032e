import { randomBytes } from 'node:crypto';
import type { PageParts } from '../model/page';

/** Location of a page's own files, and the origin that its policy allows. */
export interface Place {
  /** Sources of the webview's own files, for the policy. */
  cspSource: string;
  script: string;
  style: string;
}

/**
 * Creates the document of the panel from the parts of the report's page. It loads only the
 * extension's own script and style, and only runs scripts with the nonce. Texts of agents therefore
 * cannot run as code.
 */
export function documentOf(parts: PageParts, place: Place, nonce: string = randomBytes(18).toString('base64')): string {
  const policy = [
    "default-src 'none'", `script-src 'nonce-${nonce}'`, `style-src ${place.cspSource} 'nonce-${nonce}'`,
    'img-src data:', "base-uri 'none'", "form-action 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>waza</title>
<style nonce="${nonce}">${parts.style}</style>
<link rel="stylesheet" href="${attribute(place.style)}">
</head>
<body class="loading">
<div id="bar" role="toolbar" aria-label="Run"></div>
<p id="problem" role="alert" hidden></p>
${inside(parts.body)}
<script nonce="${nonce}">${parts.script}</script>
<script nonce="${nonce}" src="${attribute(place.script)}"></script>
</body>
</html>
`;
}

/** Returns the document to show while there are no results, with the reason. */
export function waitingDocument(text: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<title>waza</title>
</head>
<body><p>${escape(text)}</p></body>
</html>
`;
}

/** The page's body starts with the tag itself. */
function inside(body: string): string {
  return body.replace(/^\s*<body[^>]*>/, '');
}

function attribute(text: string): string {
  return escape(text).replaceAll('"', '&quot;');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
