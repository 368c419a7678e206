// The second page is what needs a configuration: the first one builds without.
export default { build: { rolldownOptions: { input: ["index.html", "slim.html"] } } };
