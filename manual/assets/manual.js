'use strict';
(() => {
  const say = document.body.dataset;
  const field = document.getElementById('search');
  const list = document.getElementById('found');
  const most = 20; // results that are shown

  const el = (tag, props, ...children) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  };

  // The index is fetched when somebody first looks for something.
  let index;
  const sections = () => (index ??= fetch(say.index)
    .then((answer) => {
      if (!answer.ok) throw new Error(String(answer.status));
      return answer.json();
    })
    .then((rows) => rows.map(([at, page, title, text]) => ({ at, page, title, text, low: [page, title, text].map((s) => s.toLowerCase()) })))
    .catch((err) => {
      index = undefined; // the next word tries again
      throw err;
    }));

  // score counts a word in a title ten times, as much for all words side by side, and five
  // for each word that is there. A section with fewer words than least is out.
  const score = (s, words, least) => {
    const [page, title, text] = s.low;
    let sum = 0;
    let there = 0;
    for (const word of words) {
      const here = (title.includes(word) ? 10 : 0) + (page.includes(word) ? 3 : 0) + Math.min(text.split(word).length - 1, 5);
      sum += here;
      if (here > 0) there++;
    }
    const phrase = words.join(' ');
    if (words.length > 1 && (title.includes(phrase) || text.includes(phrase))) sum += 10;
    return there >= least ? sum + 5 * there : 0;
  };

  const rank = (all, words, least) => all.map((s) => [score(s, words, least), s])
    .filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]).slice(0, most).map(([, s]) => s);

  // pairs splits Chinese, which has no spaces between its words, into pairs of characters.
  const pairs = (word) => (/^\p{Script=Han}{3,}$/u.test(word) ? [...word].slice(1).map((c, i) => [...word][i] + c) : [word]);

  // asking are the words of Chinese that make a question, and are in every page.
  const asking = /怎么样?|怎样|如何|为什么|什么|多少|哪些|吗/u;

  // find wants all words. Where they are nowhere together, a third of them, or of their pairs.
  const find = (all, words) => {
    const found = rank(all, words, words.length);
    if (found.length) return [found, words];
    const parts = words.flatMap((word) => word.split(asking)).filter(Boolean).flatMap(pairs);
    return [rank(all, parts, Math.ceil(parts.length / 3)), parts];
  };

  // around shows the first of the words with what stands beside it.
  const around = (s, words) => {
    const at = words.map((w) => s.low[2].indexOf(w)).filter((i) => i >= 0).sort((a, b) => a - b)[0] ?? 0;
    // It begins with a word, if one does nearby: Chinese has no spaces.
    const near = Math.max(0, at - 40);
    const space = near && s.text.slice(near, at).search(/\s/) + 1;
    const from = near + (space <= 20 ? space : 0);
    const out = el('small');
    out.append(from > 0 ? '…' : '');
    let rest = s.text.slice(from, from + 140);
    while (rest) {
      const low = rest.toLowerCase();
      const hits = words.map((w) => [low.indexOf(w), w.length]).filter(([i]) => i >= 0).sort((a, b) => a[0] - b[0]);
      if (!hits.length) break;
      const [i, length] = hits[0];
      out.append(rest.slice(0, i), el('mark', { textContent: rest.slice(i, i + length) }));
      rest = rest.slice(i + length);
    }
    out.append(rest);
    return out;
  };

  const show = async () => {
    const asked = field.value;
    const words = asked.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 8);
    if (!words.length) {
      list.hidden = true;
      return;
    }
    let all;
    try {
      all = await sections();
    } catch (err) {
      list.replaceChildren(el('li', {}, el('p', { textContent: err.message })));
      list.hidden = false;
      return;
    }
    if (field.value !== asked) return; // another word was typed meanwhile
    const [found, parts] = find(all, words);
    list.replaceChildren(...found.map((s) =>
      el('li', {}, el('a', { href: s.at || './' }, s.title === s.page ? s.page : s.page + ' › ' + s.title, around(s, parts)))));
    if (!found.length) list.append(el('li', {}, el('p', { textContent: say.nothing })));
    list.hidden = false;
  };

  field.addEventListener('input', show);
  field.addEventListener('focus', show);
  document.addEventListener('keydown', (e) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
    if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey) {
      e.preventDefault();
      field.focus();
    }
    if (list.hidden) return;
    const links = [...list.querySelectorAll('a')];
    const at = links.indexOf(document.activeElement);
    if (e.key === 'Escape') {
      list.hidden = true;
      field.focus();
      list.hidden = true;
    } else if (e.key === 'ArrowDown' && (at >= 0 || e.target === field)) {
      e.preventDefault();
      links[Math.min(at + 1, links.length - 1)]?.focus();
    } else if (e.key === 'ArrowUp' && at >= 0) {
      e.preventDefault();
      (links[at - 1] ?? field).focus();
    } else if (e.key === 'Enter' && e.target === field) {
      links[0]?.click();
    }
  });
  document.addEventListener('click', (e) => {
    if (!e.target.closest('.search') || e.target.closest('#found a')) list.hidden = true;
  });

  // On a phone the list of pages is closed until it is asked for.
  if (matchMedia('(max-width: 760px)').matches) document.getElementById('menu').open = false;

  // A block of code can be copied. Of a session at a terminal, the commands are.
  if (navigator.clipboard) {
    for (const pre of document.querySelectorAll('main pre')) {
      const button = el('button', { className: 'copy', type: 'button', textContent: say.copy });
      button.addEventListener('click', async () => {
        const text = pre.textContent;
        const commands = text.split('\n').filter((line) => line.startsWith('$ ')).map((line) => line.slice(2));
        await navigator.clipboard.writeText(commands.length ? commands.join('\n') + '\n' : text);
        button.textContent = say.copied;
        setTimeout(() => (button.textContent = say.copy), 2000);
      });
      const block = el('div', { className: 'block' });
      pre.replaceWith(block);
      block.append(pre, button);
    }
  }
})();
