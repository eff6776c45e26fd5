// Files for other programs. A cell that a spreadsheet would take for a formula is text.

export type Cell = string | number | boolean | null | undefined;

function cell(value: Cell) {
  if (value === null || value === undefined) return '';
  let text = String(value);
  if (typeof value === 'string' && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(head: string[], rows: Cell[][]) {
  return [head, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

/** Hands a file to the reader. The mark at its beginning tells spreadsheets that it is UTF-8. */
export function save(name: string, type: 'text/csv' | 'application/json', text: string) {
  const blob = new Blob(type === 'text/csv' ? ['\ufeff', text] : [text], { type: `${type};charset=utf-8` });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const stamp = (at: number) => new Date(at).toISOString().slice(0, 19).replaceAll(':', '').replace('T', '-');
