// What JSX becomes in the bundles (build.mjs): calls of these, which are shorter than those of the automatic runtime.

export { Fragment as JsxFragment, h as jsxElement } from "preact";
