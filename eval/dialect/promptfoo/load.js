// waza: code that loads modules of the suite
const [fs, path, url, nodeModule] = ["fs", "path", "url", "module"].map(name => process.getBuiltinModule ? process.getBuiltinModule(name) : require(name));
// load returns the exports of a module: CommonJS, a module of ECMAScript, also in a file .js whose package
// does not say so, or TypeScript, which node itself reads.
const load = async file => {
	const href = url.pathToFileURL(file).href;
	if (/\.[cm]?ts$/.test(file) && !process.features.typescript) {
		throw new Error(`${path.basename(file)} is TypeScript, which needs Node.js 22.18 or later; this is ${process.version}`);
	}
	// Imports can omit the extension, or name the file that a compiler of TypeScript would write.
	nodeModule.registerHooks?.({resolve(name, context, next) {
		try {
			return next(name, context);
		} catch (e) {
			if (!/^\.{1,2}\//.test(name)) throw e;
			for (const other of [name.replace(/\.([cm]?)js$/, ".$1ts"), ...[".ts", ".mts", ".js", ".mjs", "/index.ts", "/index.js"].map(end => name + end)]) {
				try { return next(other, context); } catch {}
			}
			throw e;
		}
	}});
	try {
		return await import(href);
	} catch (e) {
		if (!(e instanceof SyntaxError && /\.js$/.test(file) && /import statement|Unexpected token 'export'|import\.meta/.test(e.message) && nodeModule.register)) throw e;
		nodeModule.register("data:text/javascript," + encodeURIComponent(`export const load = (url, context, next) =>
			next(url, /^file:(?!.*\\/node_modules\\/).*\\.js(\\?.*)?$/.test(url) ? {...context, format: "module"} : context);`));
		return import(href + "?module");
	}
};
