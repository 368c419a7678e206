// Documents as HTML. Anchors are those that repository hosts make, so that one link is right in both places.

import GithubSlugger from "github-slugger";
import hljs from "highlight.js";
import MarkdownIt from "markdown-it";

/** Words after a fence that highlight.js has another name for. */
const LANGUAGES = { console: "bash", "rust,no_run": "rust", "rust,ignore": "rust", text: undefined };

/** A block of code as HTML. */
export function code(text, info) {
  const name = info in LANGUAGES ? LANGUAGES[info] : info;
  if (!name || !hljs.getLanguage(name)) return escape(text);
  // Lines that are there for the test of an example alone, as rustdoc hides them.
  const shown = name === "rust" ? text.replace(/^ *#(?: .*)?\n/gm, "") : text;
  return hljs.highlight(shown, { language: name }).value;
}

export const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** The text of an inline token, without its marks. */
const plain = ({ children }) => children.map((it) => (["text", "code_inline"].includes(it.type) ? it.content : it.type === "softbreak" ? " " : "")).join("");

/**
 * Renders a document. `link` gives the address for a link's target; undefined makes it plain text. Returns the title, the HTML
 * behind it, the headings of its contents, and its sections for the search.
 */
export function render(text, link) {
  const md = new MarkdownIt({ html: false, highlight: (it, info) => code(it, info.trim()) });
  const tokens = md.parse(text, {});
  const slugger = new GithubSlugger();
  const headings = [];
  const sections = [];
  tokens.forEach((token, i) => {
    const inline = tokens[i + 1];
    if (token.type === "heading_open") {
      const heading = { level: Number(token.tag[1]), id: slugger.slug(plain(inline)), title: plain(inline) };
      token.attrSet("id", heading.id);
      headings.push(heading);
      sections.push({ ...heading, text: [] });
    } else if (token.type === "inline") {
      if (tokens[i - 1].type !== "heading_open") sections.at(-1)?.text.push(plain(token));
      redirect(token, link);
    }
  });
  const { rules } = md.renderer;
  const self = (tokens, i, options, _, renderer) => renderer.renderToken(tokens, i, options);
  rules.heading_close = (tokens, i, ...rest) => {
    const id = tokens[i - 2].attrGet("id");
    return `<a class="anchor" href="#${escape(id)}" aria-label="link to this section">#</a>${self(tokens, i, ...rest)}`;
  };
  rules.table_open = () => '<div class="table"><table>\n';
  rules.table_close = () => "</table></div>\n";
  const [first] = headings;
  if (first?.level !== 1 || tokens[0].type !== "heading_open") throw new Error("a document begins with its title, `# …`");
  const html = md.renderer.render(tokens.slice(3), md.options, {});
  return { title: first.title, html, headings: headings.slice(1), sections: sections.map((it) => ({ ...it, text: it.text.join(" ") })) };
}

/** Gives the links of a paragraph their addresses on the site. */
function redirect({ children }, link) {
  for (const [i, token] of children.entries()) {
    const attribute = token.type === "link_open" ? "href" : token.type === "image" ? "src" : undefined;
    if (attribute === undefined) continue;
    const address = link(token.attrGet(attribute));
    if (address !== undefined) token.attrSet(attribute, address);
    else Object.assign(token, { tag: "span", attrs: [["class", "file"]] });
    // Here they are pages, and no files.
    const text = children[i + 1];
    if (text?.type === "text" && /^[\w/-]+\.md$/.test(text.content)) text.content = text.content.slice(0, -".md".length);
  }
  // A closing tag is that of its opening one.
  const open = [];
  for (const token of children) {
    if (token.type === "link_open") open.push(token.tag);
    else if (token.type === "link_close") token.tag = open.pop();
  }
}
