// The editor of the query page: SQL with completion of the public tables. `make editor` bundles it.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLite, sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { EditorView, drawSelection, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// The colors are those of the page, whose variables an editor in a shadow tree inherits.
const COLORS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--mark0)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--mark3)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--mark1)" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--mark4)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
]);
const SPEECH = { dialect: SQLite, upperCaseKeywords: true };
const THEME = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--raised)", border: "1px solid var(--edge)", borderRadius: "4px" },
  "&.cm-focused": { outline: "3px solid var(--seal)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "0.9375rem", lineHeight: "1.5", maxHeight: "60vh" },
  ".cm-content": { minHeight: "11em", padding: "8px 0", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 10px" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in srgb, var(--seal) 22%, transparent)",
  },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--seal-wash)", outline: "1px solid var(--seal)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--edge)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "0.875rem" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "2px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--seal)", color: "var(--seal-ink)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "1" },
  ".cm-completionInfo": { fontFamily: "var(--sans)", fontSize: "0.875rem", maxWidth: "22rem", padding: "6px 10px" },
  // There it would cover the list.
  "@media (max-width: 40em)": { ".cm-tooltip.cm-completionInfo": { display: "none" } },
});

/** Return a source of completions: the columns of the tables that a statement names, also without a prefix. */
function columnsOf(tables) {
  return (context) => {
    const word = context.matchBefore(/\w*/);
    const before = context.state.sliceDoc(word.from - 1, word.from);
    if (before === "." || before === ":" || (word.from === word.to && !context.explicit)) return null;
    const named = new Set(context.state.doc.toString().match(/\w+/g));
    const options = Object.keys(tables)
      .filter((table) => named.has(table))
      .flatMap((table) => tables[table].map((column) => ({ ...column, boost: 1 })));
    return { from: word.from, options, validFor: /^\w*$/ };
  };
}

/**
 * Put an editor in place of a text area, which keeps the statement and stays what the form sends.
 *
 * It is in a shadow tree, where its styles are adopted sheets: the policy of pages allows no style elements.
 */
export function edit(area, { label, description, phrases }) {
  const host = document.createElement("div");
  host.className = "editor";
  area.after(host);
  const root = host.attachShadow({ mode: "open" });
  const language = new Compartment();
  const had = document.activeElement === area;
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: area.value,
      selection: had ? { anchor: area.selectionStart, head: area.selectionEnd } : undefined,
      extensions: [
        // The form runs the statement by this key. Tab is no key of the editor, so that it leads on as in every field.
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => true }])),
        history(),
        drawSelection(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ icons: false }),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
        language.of(sql(SPEECH)),
        syntaxHighlighting(COLORS),
        THEME,
        EditorView.lineWrapping,
        EditorState.phrases.of(phrases),
        EditorView.contentAttributes.of({
          "aria-label": label,
          "aria-description": description,
          spellcheck: "false",
          autocapitalize: "off",
        }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) area.value = update.state.doc.toString();
        }),
      ],
    }),
  });
  area.hidden = true;
  area.required = false;
  document.querySelector(`label[for="${area.id}"]`).addEventListener("click", () => view.focus());
  if (had) view.focus();
  return {
    focus: () => view.focus(),
    /** Let completion know the tables: an object of each table's columns, as {label, detail, info}. */
    know(tables) {
      const columns = SQLite.language.data.of({ autocomplete: columnsOf(tables) });
      view.dispatch({ effects: language.reconfigure([sql({ ...SPEECH, schema: tables }), columns]) });
    },
  };
}
